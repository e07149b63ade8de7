// --- The view of a feature: what its values add to the scores, where they lie in the data, and where rules cut them --

function viewFeatures(model) {
  const { names } = model.features;
  const list = listRules(model, "Rules that test the feature");
  const title = element("h3", { class: "picked" });
  const facts = element("div");
  const shape = element("div");
  const chart = element("div");
  const pairs = element("div");
  const ranked = model.rankedFeatures;
  const most = Math.max(1, ...ranked.map(({ rules }) => rules));
  const picker = choice(
    "feature-pick",
    "Pick a feature",
    model.usedFeatures.map((f) => [f, names[f]]),
    (f) => {
      location.hash = `feature/${f}`;
    },
  );
  const rows = ranked
    .slice(0, 200)
    .map(({ feature, rules }) =>
      element(
        "li",
        { "data-feature": feature },
        element("a", { href: `#feature/${feature}`, title: names[feature] }, nameFeature(model, feature)),
        shareBar(rules / most),
        element("span", { class: "number" }, count(rules, "rule")),
      ),
    );
  const node = element(
    "section",
    { class: "split" },
    element(
      "div",
      { class: "side" },
      element("h2", {}, "Features"),
      picker.field,
      element(
        "p",
        { class: "faint" },
        ranked.length > rows.length ? `The ${rows.length} of the largest gain:` : "By gain:",
      ),
      element("ul", { class: "bars shares index" }, rows),
    ),
    element(
      "div",
      { class: "content" },
      title,
      facts,
      shape,
      chart,
      pairs,
      element("h4", {}, "Rules that test it"),
      list.node,
    ),
  );

  function show(feature) {
    if (!ranked.length) {
      title.textContent = "No rule tests a feature.";
      return;
    }
    picker.select.value = String(feature);
    rows.forEach((row) => setCurrent(row.firstChild, Number(row.dataset.feature) === feature));
    title.replaceChildren(named(names[feature]));
    const rules = model.featureRules[feature];
    const conditions = rules.flatMap((t) =>
      listConditions(model, t).filter((condition) => condition.feature === feature),
    );
    const histogram = model.features.histograms[feature];
    const hasNames = feature in model.features.categories;
    const kind = isOrdinal(model, feature) ? "ordinal" : hasNames ? "nominal" : "numeric";
    facts.replaceChildren(
      listPairs([
        ["kind", kind],
        ["rules", formatWhole(rules.length)],
        ["conditions", formatWhole(conditions.length)],
        histogram && histogram.missing > 0 && ["missing for", count(histogram.missing, "example")],
      ]),
    );
    const own = findShape(model, feature);
    shape.replaceChildren(...(rules.length ? drawShape(model, own, histogram) : []));
    pairs.replaceChildren(...drawPairs(model, feature));
    const picture = hasNames
      ? drawCategories(model, feature, conditions, histogram)
      : drawThresholds(conditions, histogram, leftOf(own));
    const position = model.image && drawPixels(model, null, [{ feature, operator: null }]);
    chart.replaceChildren(
      element(
        "div",
        { class: "chart" },
        position,
        element(
          "figure",
          {},
          picture,
          element("figcaption", { class: "faint" }, ...describeChart(kind, histogram)),
        ),
      ),
    );
    list.show([...rules].sort((a, b) => model.rules.gain[b] - model.rules.gain[a] || a - b));
  }
  return { node, show };
}

function describeChart(kind, histogram) {
  const first = histogram ? "Bars: examples of the data. " : "There are no data, so bars are missing. ";
  if (kind !== "numeric")
    return [
      first,
      element("span", { class: "for" }, kind === "ordinal" ? "≤" : "="),
      " and ",
      element("span", { class: "against" }, kind === "ordinal" ? ">" : "≠"),
      ` count the conditions on a ${kind === "ordinal" ? "level" : "category"}.`,
    ];
  return [
    first,
    "Below the axis: thresholds of conditions ",
    element("span", { class: "for" }, ">"),
    " and ",
    element("span", { class: "against" }, "≤"),
    ".",
  ];
}

function drawThresholds(conditions, histogram, left) {
  const values = conditions.map(({ value }) => value);
  let { low, high, counts } = histogram ?? {};
  if (!counts?.length) {
    // only the thresholds are known
    low = values.reduce((a, b) => Math.min(a, b), Infinity);
    high = values.reduce((a, b) => Math.max(a, b), -Infinity);
    counts = new Array(30).fill(0);
  }
  if (!conditions.length && !histogram) return element("p", { class: "faint" }, "No rule tests this feature.");
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  return drawHistogram({ low, high, counts, conditions, left });
}

function drawCategories(model, feature, conditions, histogram) {
  const ordinal = isOrdinal(model, feature);
  const [yes, no] = ordinal ? [AT_MOST, ABOVE] : [EQUAL, UNEQUAL];
  const tests = new Map();
  for (const { operator, value } of conditions) {
    const entry = tests.get(value) ?? { [yes]: 0, [no]: 0 };
    entry[operator] += 1;
    tests.set(value, entry);
  }
  const codes = Object.keys(model.features.categories[feature]).map(Number);
  const frequency = (code) => histogram?.counts[code] ?? 0;
  codes.sort((a, b) => (ordinal ? 0 : frequency(b) - frequency(a)) || a - b);
  const most = Math.max(1, ...codes.map(frequency));
  const rows = codes.map((code) => {
    const entry = tests.get(code) ?? { [yes]: 0, [no]: 0 };
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, named(nameCategory(model, feature, code))),
      element("td", { class: "wide-cell" }, histogram && shareBar(frequency(code) / most)),
      element("td", { class: "number" }, histogram ? formatWhole(frequency(code)) : "–"),
      element("td", { class: "number for" }, entry[yes] ? formatWhole(entry[yes]) : "·"),
      element("td", { class: "number against" }, entry[no] ? formatWhole(entry[no]) : "·"),
    );
  });
  if (histogram?.others)
    rows.push(
      element(
        "tr",
        { class: "faint" },
        element("th", { scope: "row" }, "all others"),
        element("td"),
        element("td", { class: "number" }, formatWhole(histogram.others)),
        element("td"),
        element("td"),
      ),
    );
  return element(
    "table",
    { class: "categories" },
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        element("th", { scope: "col" }, ordinal ? "level" : "category"),
        element("th"),
        ...["examples", ...(ordinal ? ["≤", ">"] : ["=", "≠"])].map((text) => element("th", { scope: "col", class: "number" }, text)),
      ),
    ),
    element("tbody", {}, rows),
  );
}
