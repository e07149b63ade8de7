// --- The overview: data, parameters, loss, curves --------------------------------------------------------------------

const MEANINGS = {
  "label-wise-logistic": "Each label is judged on its own: the sum over the labels of log(1 + exp(−y f)) (Eq. 6).",
  "example-wise-logistic":
    "The labels of an example are judged together: log(1 + Σ exp(−y f)) (Eq. 7) is small only if all are right.",
  "joint-logistic":
    "The label vectors known from training are judged against each other: minus the logarithm of the probability of the right one.",
  "label-wise-squared-error": "Each label is judged on its own, by the square of its distance to −1 or +1.",
  "example-wise-squared-error":
    "The labels of an example are judged together, by the distance of the scores to −1 and +1.",
  "label-wise-squared-hinge": "Each label is judged on its own, by the square of what it falls short of −1 or +1.",
  "example-wise-squared-hinge":
    "The labels of an example are judged together, by what the scores fall short of −1 and +1.",
  "squared-error": "Half the squared distance of the predicted numbers to the true ones.",
  "absolute-error": "The distance of the predicted numbers to the true ones.",
  huber: "Half the squared distance of the predicted numbers to the true ones, up to 1; beyond, the distance less 1/2.",
};
const DECODINGS = {
  sign: "A label is predicted if its score is above 0 (Eq. 18).",
  loss: "Of the label vectors known from training, the one of least loss is predicted (Eq. 19).",
  sum: "Of the label vectors known from training, the most probable one is predicted.",
  f1: "The labels whose expected F-measure is the largest are predicted, by the label vectors known from training.",
  mean: "A label is predicted if it is more probable than not, by itself and by the label vectors known from training.",
  rank: "The most probable labels are predicted.",
  cuts: "A label is predicted if its probability is above a threshold.",
  classes: "The class of the largest score is predicted; of two classes, the second if the score is above 0.",
  numbers: "The scores are the predicted numbers.",
};

function listPairs(pairs) {
  return element(
    "dl",
    { class: "pairs" },
    pairs.filter(Boolean).map(([term, value]) => element("div", {}, element("dt", {}, term), element("dd", {}, value))),
  );
}

function describeData(model) {
  const { data, training, labels, features, kind } = model;
  const shown = model.examples ? model.examples.rows.length : 0;
  const nominal = model.usedFeatures.filter((f) => f in features.categories && !isOrdinal(model, f)).length;
  return [
    data && ["examples", formatWhole(data.examples)],
    data && data.examples > shown && ["of them in this page", `${formatWhole(shown)}, drawn at random`],
    Number.isInteger(training.examples) && ["learned from", count(training.examples, "example")],
    ["features", formatWhole(features.total)],
    [
      "of them in rules",
      formatWhole(model.usedFeatures.length) + (nominal ? ` (${formatWhole(nominal)} nominal)` : ""),
    ],
    [kind === "numbers" ? "targets" : kind === "classes" ? "scores" : "labels", formatWhole(labels.names.length)],
    data?.relevant_labels !== undefined &&
      kind === "labels" && [
        data.unknown_labels > 0 ? "labels per example, as far as known" : "labels per example",
        formatNumber(Number((data.relevant_labels / data.examples).toPrecision(3))),
      ],
    data && data.missing_values > 0 && ["missing values", formatWhole(data.missing_values)],
    data?.unknown_labels > 0 && ["unknown labels", formatWhole(data.unknown_labels)],
  ];
}

function describeTraining(training) {
  return Object.entries(training)
    .filter(
      ([name, value]) => !["examples", "features", "labels", "rules", "objective"].includes(name) && value !== null,
    )
    .map(([name, value]) => [
      { loss: "mean training loss", seed: "seed of the draws" }[name] ?? named(name),
      typeof value === "number" && name !== "seed" ? formatNumber(value) : named(String(value)),
    ]);
}

function rankFeatures(model) {
  const { gain, condition_offsets, condition_features } = model.rules;
  const sums = new Float64Array(model.features.names.length);
  const counts = new Uint32Array(model.features.names.length);
  for (let t = 0; t < model.nRules; t++) {
    // the gain of a rule is shared by its conditions
    const n = condition_offsets[t + 1] - condition_offsets[t];
    const own = new Set(condition_features.subarray(condition_offsets[t], condition_offsets[t + 1]));
    for (let c = condition_offsets[t]; c < condition_offsets[t + 1]; c++)
      sums[condition_features[c]] += Math.max(gain[t], 0) / n;
    for (const feature of own) counts[feature] += 1;
  }
  return model.usedFeatures
    .map((feature) => ({ feature, gain: sums[feature], rules: counts[feature] }))
    .sort((a, b) => b.gain - a.gain || b.rules - a.rules || a.feature - b.feature);
}

function spreadGain(model) {
  const gains = new Float64Array(model.features.names.length);
  for (const { feature, gain } of model.rankedFeatures) gains[feature] = gain;
  return gains;
}

function viewOverview(model) {
  const changed = model.parameters.filter((parameter) => parameter.changed);
  const describe = ({ name, value, meaning }) => [element("span", { title: meaning }, name), named(value)];
  const ranked = model.rankedFeatures.slice(0, 8);
  const most = ranked.length ? ranked[0].gain || 1 : 1;
  const telling = Math.min(model.nRules - 1, 1);
  const node = element(
    "section",
    { class: "overview" },
    element("h2", { class: "visually-hidden" }, "Overview"),
    model.decoding.note && element("p", { class: "note" }, named(model.decoding.note)),
    element(
      "div",
      { class: "cards" },
      element("article", {}, element("h3", {}, "Data"), listPairs(describeData(model))),
      element("article", {}, element("h3", {}, "Training"), listPairs(describeTraining(model.training))),
      element(
        "article",
        {},
        element("h3", {}, "Loss"),
        element("p", {}, element("strong", {}, named(model.objective))),
        element(
          "p",
          {},
          Object.hasOwn(MEANINGS, model.objective) ? MEANINGS[model.objective] : "A loss of the user's own.",
        ),
        element("p", {}, DECODINGS[model.decoding.kind]),
      ),
    ),
    model.curves.length > 0 &&
      element(
        "article",
        {},
        element("h3", {}, "With more rules"),
        element("div", { class: "curves" }, model.curves.map(drawCurve)),
        element("p", { class: "faint" }, describeCurves(model)),
      ),
    element(
      "div",
      { class: "cards two" },
      element(
        "article",
        { class: "matter" },
        element("h3", {}, "Features that matter"),
        model.image && drawMap(model, spreadGain(model), "The share of the gain that each pixel has"),
        element(
          "ul",
          { class: "bars shares" },
          ranked.map(({ feature, gain, rules }) =>
            element(
              "li",
              {},
              element("a", { href: `#feature/${feature}` }, nameFeature(model, feature)),
              shareBar(gain / most),
              element("span", { class: "number" }, count(rules, "rule")),
            ),
          ),
        ),
        element(
          "p",
          { class: "faint" },
          ranked.length ? "By the gain of the rules that test them." : "No rule tests a feature.",
        ),
      ),
      element(
        "article",
        {},
        element("h3", {}, "How to read a rule"),
        element("ol", { class: "rules plain" }, describeRule(model, telling)),
        element(
          "p",
          { class: "faint" },
          "An example that meets all conditions gets the scores of the rule: ",
          element("span", { class: "for" }, "above 0"),
          " for a label, ",
          element("span", { class: "against" }, "below 0"),
          " against it. The sums over all such rules decide.",
        ),
      ),
    ),
    element(
      "article",
      {},
      element("h3", {}, "Parameters"),
      changed.length ? listPairs(changed.map(describe)) : element("p", { class: "faint" }, "All have their defaults."),
      element(
        "details",
        {},
        element("summary", {}, `all ${model.parameters.length} parameters`),
        listPairs(model.parameters.map(describe)),
      ),
    ),
  );
  return { node, show() {} };
}

function describeCurves(model) {
  if (!model.data) return "How much of the gain the first rules have. With data (--data), losses are shown here.";
  const { examples, measured } = model.data;
  if (!measured) return "";
  return measured < examples
    ? `Computed on ${formatWhole(measured)} of the examples, drawn at random.`
    : "Computed on all examples given.";
}
