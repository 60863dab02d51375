/* The command palette and the list of shortcuts. app.js loads this file when one of them is first opened.
   The palette offers the pages that the search page links to, and the search; without scripts that page serves. */

const palette = document.getElementById("palette");
const entries = palette.querySelector("ul");
const input = palette.querySelector("[name=q]");
let commands = [];
let isComplete = false;

export async function openPalette() {
  if (palette.open) return;
  input.value = "";
  if (!isComplete) commands = commandsOf(document.querySelectorAll("body > .side a, nav.section a, .bar .drop a"));
  offerCommands("");
  palette.showModal();
  if (!isComplete) await readCommands();
}

/** Replace the links of this page's menus by those of the search page, read once. If that fails, the menus' remain. */
async function readCommands() {
  const response = await fetch(palette.querySelector("form").action, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!response?.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const links = page.querySelectorAll("#places a");
  if (!links.length) return;
  [commands, isComplete] = [commandsOf(links), true];
  offerCommands(input.value);
}

/** Address, text and group of each link; the group is the name of its list on the search page, if that says more. */
function commandsOf(links) {
  return [...links].map((link) => {
    const label = link.firstChild.textContent.trim();
    const group = link.closest("#places nav")?.getAttribute("aria-label") ?? "";
    return { href: link.href, label, group: group === label ? "" : group };
  });
}

/** Fill the list with the commands whose text and group contain every word that was typed. */
function offerCommands(text) {
  const typed = text.toLowerCase().split(/\s+/).filter(Boolean);
  const items = new Map();
  for (const command of commands) {
    const words = `${command.label} ${command.group}`.toLowerCase();
    if (typed.every((word) => words.includes(word))) items.set(`${command.href} ${command.label}`, command);
  }
  entries.replaceChildren(...[...items.values()].map(({ href, label, group }) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const place = document.createElement("small");
    Object.assign(link, { href, textContent: `${label} `, tabIndex: -1 });
    Object.assign(place, { className: "quiet", textContent: group });
    link.append(place);
    item.setAttribute("role", "option");
    item.append(link);
    return item;
  }));
  palette.querySelector("p").hidden = items.size > 0;
  choose(typed.length && entries.children.length ? 0 : -1);
}

/** Mark one entry, which Enter opens; with none marked Enter searches. */
function choose(index) {
  [...entries.children].forEach((item, at) => item.setAttribute("aria-selected", at === index));
  entries.children[index]?.scrollIntoView({ block: "nearest" });
}

palette.addEventListener("keydown", (event) => {
  const at = [...entries.children].findIndex((item) => item.ariaSelected === "true");
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    choose(Math.min(Math.max(at + (event.key === "ArrowDown" ? 1 : -1), -1), entries.children.length - 1));
  } else if (event.key === "Enter" && at >= 0) {
    event.preventDefault();
    location.assign(entries.children[at].firstChild.href);
  }
});
palette.addEventListener("input", (event) => offerCommands(event.target.value));
palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });

/** The table of the page with the shortcuts, in a dialog above this page. */
export async function showShortcuts(href) {
  const response = await fetch(href, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const table = page.getElementById("shortcuts");
  if (!table) return location.assign(href);
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", page.querySelector("h1").textContent);
  dialog.append(table);
  dialog.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
