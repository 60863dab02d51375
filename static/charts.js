/* Draws charts beside the tables that hold their numbers. A chart reads the cells, so the two cannot differ.
   app.js loads this file after the page is shown; without it there are only the tables, and no number is missing.
   uPlot is loaded when a chart comes near the visible part of the page. */

const NEAR = "200px";
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const scientific = new Intl.NumberFormat("en", { notation: "scientific", maximumSignificantDigits: 2 });
const drawn = new Map(); // each figure with its chart
let library;

/** uPlot and its stylesheet, fetched once; the page names where they are. */
function loaded() {
  const { uplot, uplotSheet } = document.querySelector("[data-uplot]").dataset;
  library ??= Promise.all([
    arrival(Object.assign(document.createElement("link"), { rel: "stylesheet", href: uplotSheet })),
    arrival(Object.assign(document.createElement("script"), { src: uplot })),
  ]);
  return library;
}

function arrival(element) {
  return new Promise((resolve, reject) => {
    element.addEventListener("load", resolve);
    element.addEventListener("error", reject);
    document.head.append(element);
  });
}

/** The contents of the table: a label for each row, and a column of numbers for each head behind the first. */
function read(table) {
  const rows = [...table.tBodies[0].rows];
  const columns = [...table.tHead.rows[0].cells].slice(1).map((head, place) => ({
    name: head.textContent.trim().toLowerCase(),
    direction: head.matches(".out") ? "out" : "in",
    sign: head.matches(".out") ? -1 : 1, // what goes out is drawn downwards
    texts: rows.map((row) => row.cells[place + 1].textContent.trim()),
  }));
  for (const column of columns) column.numbers = column.texts.map((text) => column.sign * Number(text.replaceAll(",", "")));
  return { labels: rows.map((row) => row.cells[0].textContent.trim()), columns };
}

/** `41.2M` on an axis, without a sign: what is below the line went out. */
function short(number) {
  const size = Math.abs(number);
  return size >= 1e15 ? scientific.format(size) : compact.format(size);
}

function colours(figure) {
  const panel = figure.closest(".panel");
  const of = (selector) => getComputedStyle(panel.querySelector(selector)).color;
  return { in: of(".key.in"), out: of(".key.out"), text: of(".readout"), line: getComputedStyle(panel).borderTopColor };
}

function options(figure, { labels, columns }, say) {
  const colour = colours(figure);
  const plot = figure.querySelector(".plot");
  const font = `${parseFloat(getComputedStyle(figure).fontSize) * 0.8}px ${getComputedStyle(figure).fontFamily}`;
  const axis = { stroke: colour.text, font, grid: { stroke: colour.line, width: 1 }, ticks: { show: false } };
  const last = labels.length - 1;
  return {
    width: plot.clientWidth,
    height: plot.clientHeight,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: { x: { time: false, range: [-0.6, last + 0.6] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 24,
        gap: 4,
        splits: () => labels.map((_, place) => place).filter((place) => place % 7 === last % 7 && place > 1),
        values: (_, places) => places.map((place) => labels[place]),
      },
      {
        ...axis,
        gap: 4,
        space: 28,
        size: (_, values) => 10 + 7 * Math.max(1, ...(values ?? []).map((text) => text.length)),
        values: (_, numbers) => numbers.map(short),
      },
    ],
    series: [{}, ...columns.map(({ direction }) => ({ fill: colour[direction], width: 0, paths: uPlot.paths.bars({ size: [0.7, 28] }), points: { show: false } }))],
    hooks: { setCursor: [(chart) => say(chart.cursor.idx)] },
  };
}

/** One chart, or the same one anew: with other colours, or for another width. */
function draw(figure) {
  drawn.get(figure)?.destroy();
  const table = figure.parentElement.querySelector("table");
  const content = read(table);
  const readout = figure.querySelector(".readout");
  const usual = readout.dataset.usual ??= readout.textContent;
  const say = (place) => {
    const of = (column) => `${column.name} ${column.texts[place]}`;
    readout.textContent = content.labels[place] ? `${content.labels[place]}: ${content.columns.map(of).join(" · ")}` : usual;
  };
  const numbers = content.columns.map((column) => column.numbers);
  drawn.set(figure, new uPlot(options(figure, content, say), [content.labels.map((_, place) => place), ...numbers], figure.querySelector(".plot")));
}

/** The arrow keys go from day to day, as the pointer does. */
function walk(event) {
  const chart = drawn.get(event.currentTarget.parentElement);
  const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  if (!chart || !(event.key in steps)) return;
  event.preventDefault();
  const last = chart.data[0].length - 1;
  const place = Math.min(Math.max((chart.cursor.idx ?? last + 1) + steps[event.key], 0), last);
  chart.setCursor({ left: chart.valToPos(place, "x"), top: 0 });
}

async function begin(figure) {
  try {
    await loaded();
  } catch {
    figure.hidden = true; // the numbers are in the table
    figure.parentElement.querySelector("details").open = true;
    return;
  }
  draw(figure);
  const plot = figure.querySelector(".plot");
  plot.addEventListener("keydown", walk);
  plot.addEventListener("blur", () => drawn.get(figure).setCursor({ left: -10, top: -10 }));
  new ResizeObserver(() => drawn.get(figure).setSize({ width: plot.clientWidth, height: plot.clientHeight })).observe(plot);
}

function beginAll() {
  const near = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      begin(target);
    }
  }, { rootMargin: NEAR });
  for (const figure of document.querySelectorAll("figure.chart")) near.observe(figure);
}

function again() {
  for (const figure of drawn.keys()) draw(figure);
}

for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", again);
new MutationObserver(again).observe(document.documentElement, { attributeFilter: ["data-theme"] });
beginAll();
