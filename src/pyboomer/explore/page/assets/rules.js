// --- Rules as people read them, and lists of them --------------------------------------------------------------------

const SIGNS = ["≤", ">", "=", "≠"];
const PAGE = 20; // rules shown at once
const FEW_LABELS = 8;
const SHOWN_LABELS = 5;
const FEW_TESTS = 8;
const SHOWN_TESTS = 6;

// The conditions of a rule in as few tests as say the same: 0.2 < x <= 0.7 instead of two.
function mergeConditions(model, t) {
  const merged = new Map();
  for (const condition of listConditions(model, t)) {
    const { feature, operator, value } = condition;
    const test = merged.get(feature) ?? { feature, above: null, atMost: null, nominal: new Map() };
    if (operator === ABOVE) test.above = test.above?.value >= value ? test.above : condition;
    else if (operator === AT_MOST) test.atMost = test.atMost?.value <= value ? test.atMost : condition;
    else test.nominal.set(`${operator} ${value}`, condition);
    merged.set(feature, test);
  }
  return [...merged.values()];
}

const isOrdinal = (model, feature) => model.features.ordinal.includes(feature);

const nameCategory = (model, feature, code) => model.features.categories[feature]?.[code] ?? "another category";

// Whether a test says that something must not be there, such as a word.
const isAbsence = ({ above, atMost }) => above === null && atMost?.digits === NO_DIGITS;

// The conditions of a rule as text, last of all what must be absent; of many, the first ones and a button for the others.
function describeBody(model, t, shortened = false) {
  const merged = mergeConditions(model, t);
  const absent = merged.filter(isAbsence);
  const present = merged.filter((test) => !isAbsence(test));
  const link = (feature) => element("a", { href: `#feature/${feature}` }, nameFeature(model, feature));
  const tests = present.flatMap(({ feature, above, atMost, nominal }) => {
    const name = () => link(feature);
    const parts = [];
    const limit = ({ value, digits }) =>
      isOrdinal(model, feature)
        ? named(nameCategory(model, feature, value))
        : exact(value, formatThreshold(value, digits));
    if (above && atMost) parts.push([limit(above), "\u00a0< ", name(), " ≤\u00a0", limit(atMost)]);
    else if (above) parts.push([name(), " >\u00a0", limit(above)]);
    else if (atMost) parts.push([name(), " ≤\u00a0", limit(atMost)]);
    for (const { operator, value } of nominal.values()) {
      parts.push([name(), ` ${SIGNS[operator]}\u00a0`, named(nameCategory(model, feature, value))]);
    }
    return parts;
  });
  const keyword = (text) => element("span", { class: "keyword" }, text);
  const join = (i) => (i ? " and " : "if ");
  const condition = (parts) => element("span", { class: "condition" }, parts);
  const words = [
    ...tests.map((parts, i) => [keyword(join(i)), condition(parts)]),
    ...absent.map(({ feature }, i) => [keyword(i ? ", " : `${join(tests.length)}none of: `), condition(link(feature))]),
  ];
  const body = element("span", { class: "body" }, words.length ? null : keyword("always"));
  const n = shortened && words.length > FEW_TESTS ? SHOWN_TESTS : words.length;
  fill(body, words.slice(0, n).flat());
  if (n < words.length) {
    const more = button(
      `and ${words.length - n} more conditions`,
      () => {
        more.replaceWith(...words.slice(n).flat());
        body.querySelectorAll("a")[n].focus();
      },
      { class: "link" },
    );
    body.append(" ", more);
  }
  return body;
}

const bodyText = (model, t) => describeBody(model, t).textContent.replaceAll("\u00a0", " ");

// The largest scores of a rule, that of `first` before all others.
function pickScores(model, t, first) {
  const scores = listScores(model, t);
  if (scores.length <= FEW_LABELS && first === null) return scores;
  const bySize = scores.sort((a, b) => Math.abs(b.score) - Math.abs(a.score));
  const wanted = bySize.filter(({ label }) => label === first);
  return [...wanted, ...bySize.filter(({ label }) => label !== first)].slice(
    0,
    scores.length <= FEW_LABELS ? FEW_LABELS : SHOWN_LABELS,
  );
}

function describeScore(model, { label, score }) {
  return element(
    "a",
    { class: `chip ${score < 0 ? "against" : "for"}`, href: `#label/${label}` },
    nameLabel(model, label),
    " ",
    signed(score),
  );
}

function describeHead(model, t, first) {
  const shown = pickScores(model, t, first);
  const all = listScores(model, t).length;
  const chips = element(
    "span",
    { class: "chips" },
    shown.map((score) => describeScore(model, score)),
  );
  if (!all) chips.append(element("span", { class: "faint" }, "nothing"));
  return element(
    "div",
    { class: "head" },
    element("span", { class: "keyword" }, "then "),
    chips,
    all > shown.length && tellAllScores(model, t, all),
  );
}

function tellAllScores(model, t, all) {
  const details = element("details", {}, element("summary", {}, `all ${formatWhole(all)} scores`));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) {
      details.append(
        listBars(
          model,
          listScores(model, t).sort((a, b) => b.score - a.score),
        ),
      );
    }
  });
  return details;
}

function listBars(model, scores) {
  const most = Math.max(...scores.map(({ score }) => Math.abs(score)));
  return element(
    "ul",
    { class: "bars" },
    scores.map(({ label, score }) =>
      element(
        "li",
        {},
        element("a", { href: `#label/${label}` }, nameLabel(model, label)),
        floatingBar(0, score, -most, most),
        signed(score),
      ),
    ),
  );
}

function describeFigures(model, t) {
  const { coverage, gain } = model.rules;
  return element(
    "span",
    { class: "figures" },
    `covers ${formatWhole(coverage[t])}`,
    model.mostCovered > 0 && ` (${formatShare(coverage[t] / model.mostCovered)})`,
    model.totalGain > 0 && ` · ${formatShare(Math.max(gain[t], 0) / model.totalGain)} of the gain`,
  );
}

function describeRule(model, t, first = null) {
  const pictures =
    model.image &&
    element(
      "span",
      { class: "pictures" },
      drawPixels(model, null, listConditions(model, t)),
      model.segments && drawHead(listScores(model, t)),
    );
  return element(
    "li",
    { class: `rule${model.off.has(t) ? " off" : ""}`, "data-rule": t },
    element("div", { class: "number" }, element("span", { class: "visually-hidden" }, "rule "), String(t)),
    element(
      "div",
      { class: "text" },
      element("p", {}, describeBody(model, t, true)),
      describeHead(model, t, first),
      element("p", { class: "faint" }, describeFigures(model, t), model.off.has(t) && " · switched off"),
    ),
    pictures,
  );
}

// A list of rules, a page at a time. `show(rules, label)` puts other rules in it.
function listRules(model, heading) {
  const list = element("ol", { class: "rules", "aria-label": heading });
  const pager = element("nav", { class: "pager", "aria-label": `Pages of ${heading}` });
  let rules = [];
  let first = null;
  function turn(page, focus = false) {
    const pages = Math.max(1, Math.ceil(rules.length / PAGE));
    list.replaceChildren(...rules.slice(page * PAGE, (page + 1) * PAGE).map((t) => describeRule(model, t, first)));
    if (!rules.length) list.append(element("li", { class: "faint empty" }, "No such rules."));
    pager.hidden = pages === 1;
    pager.replaceChildren(
      button("← Previous", () => turn(page - 1, true), { disabled: page === 0, class: "quiet" }),
      element("span", {}, `page ${page + 1} of ${formatWhole(pages)}`),
      button("Next →", () => turn(page + 1, true), { disabled: page === pages - 1, class: "quiet" }),
    );
    if (focus) {
      list.scrollIntoView({ block: "start" });
      (pager.querySelector("button:not(:disabled):last-of-type") ?? pager.querySelector("button:not(:disabled)")).focus(
        { preventScroll: true },
      );
    }
  }
  return {
    node: element("div", {}, list, pager),
    show(others, label = null) {
      rules = others;
      first = label;
      turn(0);
    },
  };
}

// --- The view of all rules -------------------------------------------------------------------------------------------

const ORDERS = {
  learned: ["as learned", () => (a, b) => a - b],
  gain: ["largest gain", (m, label) => (a, b) => gainOf(m, b, label) - gainOf(m, a, label) || a - b],
  coverage: ["most examples", (m) => (a, b) => m.rules.coverage[b] - m.rules.coverage[a] || a - b],
  specific: ["fewest examples", (m) => (a, b) => m.rules.coverage[a] - m.rules.coverage[b] || a - b],
  short: ["fewest conditions", (m) => (a, b) => countConditions(m, a) - countConditions(m, b) || a - b],
  score: ["largest score", (m, label) => (a, b) => sizeOf(m, b, label) - sizeOf(m, a, label) || a - b],
};

// The gain of a rule, or the part of it that a label has of the scores.
function gainOf(model, t, label) {
  const gain = Math.max(model.rules.gain[t], 0);
  if (label === null) return gain;
  const total = listScores(model, t).reduce((sum, { score }) => sum + Math.abs(score), 0);
  return total > 0 ? (gain * Math.abs(scoreOf(model, t, label))) / total : 0;
}

// How many rules were found, and how few of them have half of the gain.
function tellTotal(model, found, label) {
  const total =
    found.length === model.nRules
      ? count(model.nRules, "rule")
      : `${formatWhole(found.length)} of ${count(model.nRules, "rule")}`;
  const gains = found.map((t) => gainOf(model, t, label)).sort((a, b) => b - a);
  let left = gains.reduce((sum, gain) => sum + gain, 0) / 2;
  if (left <= 0 || found.length < 3) return total;
  const half = gains.findIndex((gain) => (left -= gain) <= 0) + 1;
  const whose = label === null ? "" : ` for ${model.labels.names[label]}`;
  return `${total}; ${formatWhole(half)} of them ${half === 1 ? "has" : "have"} half of their gain${whose}`;
}

const countConditions = ({ rules }, t) => rules.condition_offsets[t + 1] - rules.condition_offsets[t];
const sizeOf = (model, t, label) =>
  label === null
    ? listScores(model, t).reduce((most, { score }) => Math.max(most, Math.abs(score)), 0)
    : Math.abs(scoreOf(model, t, label));

// What a search looks through: the number, the body, and the labels of a head that does not have all of them.
function indexRules(model) {
  return Array.from({ length: model.nRules }, (_, t) => {
    const scores = listScores(model, t);
    const labels = scores.length < model.nLabels ? scores.map(({ label }) => model.labels.names[label]) : [];
    return [`#${t}`, bodyText(model, t).replaceAll("≤", "<="), ...labels].join(" ").toLowerCase();
  });
}

function viewRules(model) {
  const everything = Array.from({ length: model.nRules }, (_, t) => t);
  const state = { search: "", label: null, side: "any", feature: null, order: "learned" };
  const list = listRules(model, "Rules");
  const total = element("p", { class: "total", role: "status" });
  let index = null;

  function update() {
    index ??= indexRules(model);
    const terms = state.search.toLowerCase().replaceAll("≤", "<=").split(/\s+/).filter(Boolean);
    const wanted = { any: (s) => s !== 0, for: (s) => s > 0, against: (s) => s < 0 }[state.side];
    const found = everything.filter(
      (t) =>
        terms.every((term) => index[t].includes(term)) &&
        (state.label === null || wanted(scoreOf(model, t, state.label))) &&
        (state.feature === null || listConditions(model, t).some(({ feature }) => feature === state.feature)),
    );
    found.sort(ORDERS[state.order][1](model, state.label));
    total.textContent = tellTotal(model, found, state.label);
    side.select.disabled = state.label === null;
    list.show(found, state.label);
  }

  const pick = (name) => (value) => {
    state[name] = value === "" ? null : Number(value);
    update();
  };
  const noun = { labels: "label", classes: "class", numbers: "target" }[model.kind];
  const label = choice(
    "rule-label",
    noun[0].toUpperCase() + noun.slice(1),
    [["", `any ${noun}`], ...model.labels.names.map((n, k) => [k, n])],
    pick("label"),
  );
  const side = choice(
    "rule-side",
    "Speaks",
    model.kind === "numbers"
      ? [
          ["any", "for more or less"],
          ["for", "for more"],
          ["against", "for less"],
        ]
      : [
          ["any", "for or against it"],
          ["for", "for it"],
          ["against", "against it"],
        ],
    (value) => {
      state.side = value;
      update();
    },
  );
  const feature = choice(
    "rule-feature",
    "Feature",
    [["", "any feature"], ...model.usedFeatures.map((f) => [f, model.features.names[f]])],
    pick("feature"),
  );
  const order = choice(
    "rule-order",
    "Order",
    Object.entries(ORDERS).map(([key, [text]]) => [key, text]),
    (value) => {
      state.order = value;
      update();
    },
  );
  const search = element("input", {
    type: "search",
    id: "rule-search",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "words, all of which a rule has",
    oninput: () => {
      state.search = search.value;
      update();
    },
  });
  const node = element(
    "section",
    {},
    element("h2", {}, "Rules"),
    element(
      "form",
      { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
      element("div", { class: "field grows" }, element("label", { for: "rule-search" }, "Search"), search),
      label.field,
      side.field,
      feature.field,
      order.field,
    ),
    total,
    list.node,
  );
  return { node, show: update };
}
