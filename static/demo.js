// The demo's sign-in aid: fills the form with one click and keeps the codes current. Loaded in the demo only.

const list = document.getElementById("demo-codes");

function fill(button) {
  for (const name of ["email", "password", "code"]) {
    const field = document.querySelector(`.card [name="${name}"]`);
    if (field && button.dataset[name]) field.value = button.dataset[name];
  }
  document.querySelector(".card form button").focus();
}

function offer() {
  for (const button of list.querySelectorAll("button[hidden]")) button.hidden = false;
}

async function refresh() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("demo-codes");
  if (fresh) list.replaceChildren(...fresh.children);
  offer();
}

function tick() {
  const counters = list.querySelectorAll("[data-seconds]");
  for (const counter of counters) counter.textContent = Math.max(0, counter.textContent - 1);
  if (counters.length && counters[0].textContent === "0") refresh();
}

list.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-email]");
  if (button) fill(button);
});
offer();
setInterval(tick, 1000);
