/* What the pages gain when scripts run. It keeps no state. */

const notice = document.getElementById("notice");
const palette = document.getElementById("palette");
const words = document.getElementById("words").dataset;

/** The text with each `{name}` replaced by the value of that name. */
function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** Show a message about the page itself; an empty text hides it. */
function showNotice(text) {
  if (!notice) return;
  notice.textContent = text;
  notice.hidden = !text;
}

/* ---- keyboard and menus ---- */

function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) && target.type !== "checkbox");
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "k" && palette) {
    event.preventDefault();
    import(palette.dataset.module).then((module) => module.openPalette());
  }
  if (event.key === "Escape") {
    const open = document.querySelector(":is(.bar details, .add)[open]");
    open?.removeAttribute("open");
    open?.querySelector("summary").focus();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (event.key === "/") {
    const search = [...document.querySelectorAll('.find input, main input[type="search"]')].find((input) => input.offsetParent);
    if (!search) return;
    event.preventDefault();
    search.focus();
    search.select();
  }
  const named = document.querySelector(`:is(a, button, details, form, summary)[aria-keyshortcuts="${CSS.escape(event.key)}"]`);
  if (named) {
    event.preventDefault();
    if (event.key === "?" && palette) import(palette.dataset.module).then((module) => module.showShortcuts(named.href));
    else reveal(named);
  }
  if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  if (event.key === "x") document.activeElement.closest("tr")?.querySelector(".pick input")?.click();
});

/** Open what a key is for and put the focus into it. Never presses a button. */
function reveal(element) {
  const details = element.closest("details");
  if (details) details.open = true;
  const scope = element.matches("summary") ? details : element;
  (scope.querySelector("input:not([type=hidden]), textarea, select, .drop a, button") ?? element).focus();
}

/** To the next or the previous row of a list. */
function step(by) {
  const rows = [...document.querySelectorAll("main a.row")];
  const at = rows.indexOf(document.activeElement.closest("tr")?.querySelector("a.row"));
  rows[Math.max(at + by, 0)]?.focus();
}

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-all]")) return;
  for (const box of event.target.form.querySelectorAll('[name="operation"]')) box.checked = event.target.checked;
});

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll(":is(.bar details, .add)[open]")) {
    if (!menu.contains(event.target)) menu.removeAttribute("open");
  }
});

/* ---- copy buttons ---- */

function addCopyButtons(root) {
  if (!navigator.clipboard) return;
  for (const source of root.querySelectorAll("[data-copy]:not([data-copy-ready])")) {
    source.dataset.copyReady = "";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "ghost copy";
    button.textContent = words.textCopy;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(source.dataset.copy);
      button.textContent = words.textCopied;
      setTimeout(() => { button.textContent = words.textCopy; }, 1500);
    });
    source.after("\u2002", button); // a space, not a margin: none is left where the button begins a line
  }
}

/* ---- print ---- */

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) print();
});

/* ---- counters ---- */

function addCounters(root) {
  for (const input of root.querySelectorAll("[data-count]:not([data-count-ready])")) {
    input.dataset.countReady = "";
    const counter = document.createElement("small");
    counter.className = "help";
    const show = () => { counter.textContent = fill(words.textCharacters, { used: [...input.value].length, limit: input.dataset.count }); };
    input.addEventListener("input", show);
    input.after(counter);
    show();
  }
}

/* ---- a corrected field loses its error ---- */

document.addEventListener("input", (event) => {
  const field = event.target, error = `${field.id}_error`;
  if (field.getAttribute("aria-invalid") !== "true") return;
  field.removeAttribute("aria-invalid");
  const described = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id && id !== error);
  if (described.length) field.setAttribute("aria-describedby", described.join(" "));
  else field.removeAttribute("aria-describedby");
  document.getElementById(error)?.remove();
});

/* ---- a form is sent once ---- */

const DOWNLOAD_BEGINS = 1500;  // milliseconds

function release(form) {
  delete form.dataset.sent;
  for (const button of form.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  form.dataset.sent = "yes";
  event.submitter?.setAttribute("aria-busy", "true");
  // A file leaves the page as it is.
  if (event.submitter?.matches("[data-downloads]")) setTimeout(release, DOWNLOAD_BEGINS, form);
}, true);

window.addEventListener("pageshow", (event) => {
  if (event.persisted) document.querySelectorAll("form[data-sent]").forEach(release);
});

/* ---- charts: not needed to show the page ---- */

window.addEventListener("load", () => {
  const charts = document.querySelector("[data-charts]");
  if (charts) import(charts.dataset.charts);
});

/* ---- ages grow ---- */

const STEPS = [[86400, words.textDay], [3600, words.textHour], [60, words.textMinute]];

const COUNTED_IN_HOURS = 4 * 86400;

/** As the template tag `age`. */
function age(seconds, steps = STEPS) {
  for (const [size, unit] of steps) {
    if (seconds >= size) return fill(unit, { n: Math.floor(seconds / size) });
  }
  return words.textNow;
}

function refreshAges() {
  for (const time of document.querySelectorAll("time[data-age]")) {
    time.textContent = age((Date.now() - Date.parse(time.dateTime)) / 1000);
  }
}

setInterval(refreshAges, 30_000);

/** As the template tag `countdown`. */
function refreshCountdowns() {
  for (const time of document.querySelectorAll("time[data-until]")) {
    const left = Math.floor((Date.parse(time.dateTime) - Date.now()) / 1000);
    const clock = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    const rounded = age(left, left < COUNTED_IN_HOURS ? STEPS.slice(1) : STEPS);
    time.textContent = left <= 0 ? words.textPassed : fill(words.textUntil, { time: left < 3600 ? clock : rounded });
  }
}

setInterval(refreshCountdowns, 1000);

/* ---- htmx: reads alone ---- */

document.addEventListener("htmx:configRequest", (event) => {
  // Filters left empty do not belong in the address.
  const { verb, parameters } = event.detail;
  if (verb !== "get") return;
  for (const name of Object.keys(parameters)) if (parameters[name] === "") delete parameters[name];
});

document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.target.closest("[data-poll]")) event.preventDefault();
});

document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful) showNotice("");
});

function enrich() {
  for (const control of document.querySelectorAll("[data-all], [data-print]")) control.hidden = false;
  addCopyButtons(document);
  addCounters(document);
}

document.addEventListener("htmx:afterSwap", enrich);

document.addEventListener("htmx:sendError", () => showNotice(words.textUnreachable));

document.addEventListener("htmx:responseError", (event) => {
  const { status } = event.detail.xhr;
  if (status === 403 || status === 404) showNotice(words.textClosed);
  else showNotice(fill(words.textFailed, { status }));
});

enrich();

// The first error gets the focus.
document.querySelector('main [role="alert"], main [aria-invalid="true"]')?.focus();
