/* The command palette and the list of shortcuts. app.js loads this file when one of them is first opened.
   The palette offers the links of this page's menus, and the search; without scripts those serve. */

const palette = document.getElementById("palette");
const entries = palette.querySelector("ul");

export function openPalette() {
  if (palette.open) return;
  palette.querySelector("input").value = "";
  offerCommands("");
  palette.showModal();
}

/** Fill the list with the links whose text contains every word that was typed. */
function offerCommands(text) {
  const typed = text.toLowerCase().split(/\s+/).filter(Boolean);
  const links = [...document.querySelectorAll("body > .side a, nav.section a, .bar .new .drop a, .bar .person .drop a")];
  const items = new Map();
  for (const link of links) {
    const label = link.firstChild.textContent.trim();
    if (typed.every((word) => label.toLowerCase().includes(word)) && !items.has(link.href)) items.set(link.href, label);
  }
  entries.replaceChildren(...[...items].map(([href, label]) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    Object.assign(link, { href, textContent: label, tabIndex: -1 });
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
