// The demo's codes: fills them in with one click and keeps them current. Loaded in the demo only.

const parts = () => [...document.querySelectorAll("[data-demo]")];

function fill({ field, email, password, code }) {
  if (field) {
    const input = document.getElementById(field);
    input.value = code;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    input.focus();
    return;
  }
  for (const [name, value] of Object.entries({ email, password, code })) {
    const input = document.querySelector(`.card [name="${name}"]`);
    if (input && value) input.value = value;
  }
  document.querySelector(".card form button").focus();
}

function offer() {
  for (const button of document.querySelectorAll("[data-demo] button[hidden]")) button.hidden = false;
}

async function refresh() {
  if (!parts().length) return;
  const address = new URL(location.href);
  address.searchParams.delete("answer"); // a stored page would show the codes of its time
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelectorAll("[data-demo]"), old = parts();
  if (fresh.length === old.length) old.forEach((part, at) => part.replaceChildren(...fresh[at].childNodes));
  offer();
}

function tick() {
  if (document.hidden) return;
  const counters = parts().flatMap((part) => [...part.querySelectorAll("[data-seconds]")]);
  for (const counter of counters) counter.textContent = Math.max(0, counter.textContent - 1);
  if (counters.some((counter) => counter.textContent === "0")) refresh();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-demo] button[data-code]");
  if (button) fill(button.dataset);
});
document.addEventListener("htmx:afterSwap", offer);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
if (new URLSearchParams(location.search).has("answer")) refresh();
offer();
setInterval(tick, 1000);
