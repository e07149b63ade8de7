// --- Elements: HTML and SVG made in one call, and numbers as text ----------------------------------------------------
//
// Text only ever enters the page as text nodes: nothing in a name can become markup.

function fill(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  return node;
}

const element = (tag, attributes = {}, ...children) =>
  fill(setAttributes(document.createElement(tag), attributes), children);

const drawing = (tag, attributes = {}, ...children) =>
  fill(setAttributes(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes), children);

// A name from the data: isolated, so that right-to-left text does not turn what stands beside it.
const named = (text, short = text) => element("bdi", { title: short === text ? null : text }, short);

const LONG_NAME = 24;
const LONG_ENDING = 8;

// Long names without the ending that most of them share: what is left tells them apart.
function shortenNames(names) {
  const long = names.filter((name) => name.length > LONG_NAME);
  const shared = new Map();
  for (const name of long) {
    for (const { index } of name.matchAll(/[_\-. /]/g)) {
      if (index > 0 && name.length - index >= LONG_ENDING)
        shared.set(name.slice(index), (shared.get(name.slice(index)) ?? 0) + 1);
    }
  }
  const common = [...shared].filter(([, n]) => n > 1 && n >= long.length / 2).map(([ending]) => ending);
  const ending = common.reduce((longest, candidate) => (candidate.length > longest.length ? candidate : longest), "");
  const short = names.map((name) => (ending && name.endsWith(ending) ? `${name.slice(0, -ending.length)}…` : name));
  return new Set(short).size === new Set(names).size ? short : names;
}

const nameFeature = (model, f) => named(model.features.names[f], model.features.short[f]);
const nameLabel = (model, k) => named(model.labels.names[k], model.labels.short[k]);

const button = (text, onclick, attributes = {}) => element("button", { type: "button", onclick, ...attributes }, text);

function setCurrent(link, isCurrent) {
  if (isCurrent) link.setAttribute("aria-current", "true");
  else link.removeAttribute("aria-current");
}

function choice(id, label, options, onchange) {
  const select = element("select", { id, onchange: () => onchange(select.value) });
  for (const [value, text] of options) select.append(element("option", { value }, text));
  return { select, field: element("div", { class: "field" }, element("label", { for: id }, label), select) };
}

const count = (number, noun) => `${formatWhole(number)} ${noun}${number === 1 ? "" : "s"}`;
const formatWhole = (number) => number.toLocaleString("en-US", { maximumFractionDigits: 1 });
const formatShare = (share) => (share >= 0.9995 ? "100 %" : `${Number((100 * share).toPrecision(2))} %`);
const formatNumber = (number) => (Number.isNaN(number) ? "missing" : minus(String(Number(number.toPrecision(6)))));

const NO_DIGITS = -1; // of a threshold that parts zero, the least value, from all others
const ROUNDED_DOWN = 32; // is added to the digits of a threshold that is rounded down

// With as many digits as it takes to divide the training examples as the threshold does; 0 means all.
function formatThreshold(value, digits) {
  if (digits === NO_DIGITS) return "0";
  if (!digits) return minus(String(value));
  const whole = Math.abs(value) < 1e15 ? String(Math.trunc(Math.abs(value))).length : 0;
  if (digits > ROUNDED_DOWN) return minus(String(roundDown(value, Math.max(digits - ROUNDED_DOWN, whole))));
  return minus(String(roundToEven(value, Math.max(digits, whole))));
}

function roundDown(value, digits) {
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const rounded = Number(`${mantissa}e${exponent}`);
  if (rounded <= value) return rounded;
  return Number(`${BigInt(mantissa.replace(".", "")) - 1n}e${exponent - digits + 1}`);
}

// Rounded as Python does: of two numbers equally near, the one that ends in an even digit. `toPrecision` takes the larger.
function roundToEven(value, digits) {
  const [mantissa, exponent] = Math.abs(value).toExponential(100).split("e");
  const all = mantissa.replace(".", "");
  const isTie = /^50*$/.test(all.slice(digits)) && Number(all[digits - 1]) % 2 === 0;
  if (!isTie) return Number(value.toPrecision(digits));
  return Math.sign(value) * Number(`${all[0]}.${all.slice(1, digits)}e${exponent}`);
}

const minus = (text) => text.replace(/^-/, "−");

function formatScore(score) {
  const size = Math.abs(score);
  const text =
    size >= 1e6
      ? String(Number(size.toPrecision(3)))
      : size >= 999.5
        ? size.toFixed(0)
        : size >= 0.0995 || size === 0
          ? size.toFixed(2)
          : String(Number(size.toPrecision(2)));
  return (score < 0 ? "−" : "+") + text;
}

// A number as people read it, and in full as machines do.
const exact = (number, text = formatNumber(number), attributes = {}) =>
  element("data", { value: String(number), ...attributes }, text);

const signed = (score) => exact(score, formatScore(score), { class: score < 0 ? "number against" : "number for" });

const announce = (text) => {
  document.getElementById("status").textContent = text;
};

// A bar from one number to another, on a scale from `low` to `high`.
function floatingBar(from, to, low, high, hollow = false) {
  const place = (value) => (100 * (value - low)) / (high - low || 1);
  const bar = element("span", { class: `${to < from ? "fill against" : "fill for"}${hollow ? " hollow" : ""}` });
  bar.style.left = `${place(Math.min(from, to))}%`;
  bar.style.width = `${Math.max(place(Math.max(from, to)) - place(Math.min(from, to)), 0.4)}%`;
  const zero = element("span", { class: "zero" });
  zero.style.left = `${place(0)}%`;
  return element("span", { class: "track", "aria-hidden": "true" }, zero, bar);
}

function shareBar(share) {
  const bar = element("span", { class: "fill plain" });
  bar.style.left = "0";
  bar.style.width = `${100 * share}%`;
  return element("span", { class: "track low", "aria-hidden": "true" }, bar);
}
