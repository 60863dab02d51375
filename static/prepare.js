/* The form of a new operation: amounts with commas, the chosen recipient, and "Use full balance". The server reads both
   notations alike, and compares the recipient with the fields. */

const SEPARATED = /^[1-9]\d{0,2}([, \u00a0\u2009\u202f])\d{3}(?:\1\d{3})*(?:\.\d+)?$/;
const PLAIN = /^(?:0|[1-9]\d*)(?:\.\d+)?$/;

/** "5,000.50" for "5000.50" and "5 000.50"; any other text unchanged: the server says what is wrong with it. */
function withCommas(text) {
  const separator = SEPARATED.exec(text)?.[1];
  const plain = separator ? text.replaceAll(separator, "") : text;
  if (!PLAIN.test(plain)) return text;
  const [whole, decimals] = plain.split(".");
  const grouped = whole.replace(/\B(?=(?:\d{3})+$)/g, ",");
  return decimals === undefined ? grouped : `${grouped}.${decimals}`;
}

document.addEventListener("focusout", (event) => {
  const field = event.target;
  if (!field.matches("[data-amount]")) return;
  const text = withCommas(field.value.trim());
  if (text !== field.value) field.value = text;
});

/* ---- a recipient is chosen until another account is entered ---- */

const ACCOUNT_FIELDS = new Set(["bank_code", "account_number", "address", "receiver_username"]);

document.addEventListener("input", (event) => {
  const choice = document.getElementById("id_known-account");
  if (choice && ACCOUNT_FIELDS.has(event.target.name)) choice.value = "";
});

/* ---- the whole balance of the chosen currency, less the fee on the chosen network if it is known ---- */

const button = document.querySelector("[data-full-balance]");
const note = document.getElementById("full-balance");

function chosen(...names) {
  return names.map((name) => button.form.elements[name]?.value).find(Boolean) ?? "";
}

function offer() {
  const currency = chosen("currency", "direction").split("-")[0];
  const offers = [...document.querySelectorAll("data[data-currency]")].filter((one) => one.dataset.currency === currency);
  return offers.find((one) => one.dataset.network === chosen("network")) ?? offers.find((one) => !one.dataset.network);
}

if (button) {
  const show = () => { button.hidden = !offer(); note.textContent = ""; };
  button.form.addEventListener("change", (event) => { if (event.target.matches("select")) show(); });
  button.addEventListener("click", () => {
    const found = offer(), amount = button.form.elements.amount;
    amount.value = found.value;
    note.textContent = found.dataset.note;
    amount.dispatchEvent(new Event("input", { bubbles: true }));
    amount.focus();
  });
  show();
}
