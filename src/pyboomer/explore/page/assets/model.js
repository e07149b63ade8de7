// --- The model: the summary read back; rules that cover, scores that add up, decodings -------------------------------

const AT_MOST = 0;
const ABOVE = 1;
const EQUAL = 2;
const UNEQUAL = 3;
const UNKNOWN = 2; // a truth that is neither 0 nor 1
const TIE = 1e-10; // losses closer than this are equal: the more frequent label vector wins
const CERTAIN = 1e12; // scores beyond it are cut off before they are added
const LEAST = 1e-300; // a probability that has a logarithm
const ARRAYS = {
  u1: Uint8Array,
  i1: Int8Array,
  u2: Uint16Array,
  i2: Int16Array,
  u4: Uint32Array,
  i4: Int32Array,
  f4: Float32Array,
  f8: Float64Array,
};

function unpack({ type, data }) {
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new ARRAYS[type](bytes.buffer);
}

function unpackBits(packed, nLabels) {
  const bits = unpack(packed);
  const width = Math.ceil(nLabels / 8);
  return Array.from({ length: bits.length / width }, (_, v) =>
    Uint8Array.from({ length: nLabels }, (_, k) => (bits[v * width + (k >> 3)] >> (7 - (k & 7))) & 1),
  );
}

function readModel(summary) {
  const rules = Object.fromEntries(Object.entries(summary.rules).map(([name, packed]) => [name, unpack(packed)]));
  const nLabels = summary.labels.names.length;
  const examples = summary.examples && {
    rows: summary.examples.rows,
    columns: summary.examples.columns.map(unpack),
    truth: summary.examples.truth && unpack(summary.examples.truth),
  };
  const decoding = { ...summary.decoding };
  if (decoding.vectors) decoding.vectors = unpackBits(decoding.vectors, nLabels);
  if (decoding.bias) decoding.bias = unpack(decoding.bias);
  if (decoding.cuts) decoding.cuts = unpack(decoding.cuts);
  return {
    ...summary,
    rules,
    examples,
    decoding,
    nRules: rules.coverage.length,
    nLabels,
    off: new Set(), // the rules that are switched off
  };
}

// The conditions of a rule, and the labels it scores.

function listConditions(model, t) {
  const { condition_offsets, condition_features, condition_operators, condition_values, condition_digits } =
    model.rules;
  const conditions = [];
  for (let c = condition_offsets[t]; c < condition_offsets[t + 1]; c++) {
    conditions.push({
      feature: condition_features[c],
      operator: condition_operators[c],
      value: condition_values[c],
      digits: condition_digits[c],
    });
  }
  return conditions;
}

function listScores(model, t) {
  const { head_offsets, head_labels, head_scores } = model.rules;
  const scores = [];
  for (let h = head_offsets[t]; h < head_offsets[t + 1]; h++) {
    if (head_scores[h] !== 0) scores.push({ label: head_labels[h], score: head_scores[h] });
  }
  return scores;
}

function scoreOf(model, t, label) {
  const { head_offsets, head_labels, head_scores } = model.rules;
  let low = head_offsets[t];
  let high = head_offsets[t + 1];
  while (low < high) {
    // labels ascend within a rule
    const middle = (low + high) >> 1;
    if (head_labels[middle] < label) low = middle + 1;
    else high = middle;
  }
  return low < head_offsets[t + 1] && head_labels[low] === label ? head_scores[low] : 0;
}

// A missing value meets no condition, whichever its operator.
function meets(x, operator, value) {
  if (operator === AT_MOST) return x <= value;
  if (operator === ABOVE) return x > value;
  if (operator === EQUAL) return x === value;
  return x !== value && !Number.isNaN(x);
}

function covers(model, t, n) {
  const { condition_offsets, condition_features, condition_operators, condition_values } = model.rules;
  for (let c = condition_offsets[t]; c < condition_offsets[t + 1]; c++) {
    const x = model.examples.columns[condition_features[c]][n];
    if (!meets(x, condition_operators[c], condition_values[c])) return false;
  }
  return true;
}

function findCovering(model, n) {
  return Array.from({ length: model.nRules }, (_, t) => t).filter((t) => covers(model, t, n));
}

// Scores are added in the order of the rules, so that they are those of the model to the last digit.
function addScores(model, covering, off) {
  const { head_offsets, head_labels, head_scores } = model.rules;
  const scores = new Float64Array(model.nLabels);
  for (const t of covering) {
    if (off.has(t)) continue;
    for (let h = head_offsets[t]; h < head_offsets[t + 1]; h++) scores[head_labels[h]] += head_scores[h];
  }
  return scores;
}

// --- From scores to predictions --------------------------------------------------------------------------------------

// 0 and 1 for each label. Of classes exactly one is relevant, unless there is only one score: that of the second class.
function decode(model, scores) {
  const { kind, vectors, bias, count, cuts } = model.decoding;
  const choose = (isRelevant) => Uint8Array.from(scores, (f, k) => (isRelevant(f, k) ? 1 : 0));
  const mark = (labels) => choose((_, k) => labels.includes(k));
  if (kind === "loss") return vectors[findLeast(vectors, scores, model.objective)];
  if (kind === "sum") return vectors[findLargest(scoreVectors(model.decoding, scores))];
  if (kind === "f1") return mark(findBestF1(model.decoding, scores));
  if (kind === "mean") {
    const together = findLogOdds(model.decoding, scores);
    return choose((f, k) => (logistic(f) + logistic(together[k])) / 2 > 1 / 2);
  }
  const odds = bias ? findLogOdds(model.decoding, scores) : scores;
  if (kind === "rank") return mark(rank(odds).slice(0, count));
  if (kind === "cuts") return choose((_, k) => odds[k] > cuts[k]);
  if (kind === "classes" && scores.length > 1) return mark([findLargest(scores)]);
  return choose((f) => f > 0);
}

function nameClass(model, relevant) {
  return model.decoding.classes[relevant.length > 1 ? relevant.indexOf(1) : relevant[0]];
}

const logistic = (f) => 1 / (1 + Math.exp(-f));

const minimum = (values) => values.reduce((smallest, value) => Math.min(smallest, value), Infinity);

function findLargest(values) {
  return values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
}

// Where the values stand in descending order; of equals, the first.
function rank(values) {
  return [...values.keys()].sort((a, b) => values[b] - values[a] || a - b);
}

// The logarithm of the probability of each known label vector, but for what all share.
function scoreVectors({ vectors, bias }, scores) {
  const terms = scores.map((f) => Math.max(-CERTAIN, Math.min(CERTAIN, f)));
  return vectors.map((y, v) => y.reduce((sum, relevant, k) => (relevant ? sum + terms[k] : sum), 0) + (bias?.[v] ?? 0));
}

function findProbabilities(decoding, scores) {
  const sums = scoreVectors(decoding, scores);
  const largest = sums[findLargest(sums)];
  const weights = sums.map((sum) => Math.exp(sum - largest));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

// The log-odds of labels: how probable the known label vectors are that have them, and those that do not.
function findLogOdds(decoding, scores) {
  const shares = [new Float64Array(scores.length), new Float64Array(scores.length)];
  findProbabilities(decoding, scores).forEach((p, v) =>
    decoding.vectors[v].forEach((relevant, k) => {
      shares[relevant][k] += p;
    }),
  );
  const [against, inFavour] = shares.map((share) => share.map((p) => Math.log(Math.max(p, LEAST))));
  return inFavour.map((logarithm, k) => logarithm - against[k]);
}

// The labels of largest expected F-measure: of each number of labels the best, and of these the best.
function findBestF1(decoding, scores) {
  const shares = new Map(); // for each size of a vector how probable its labels are together with it
  let [best, chosen] = [0, []];
  findProbabilities(decoding, scores).forEach((p, v) => {
    const labels = [...scores.keys()].filter((k) => decoding.vectors[v][k]);
    if (!labels.length) best = p; // to predict nothing is right if there is nothing
    if (!shares.has(labels.length)) shares.set(labels.length, new Float64Array(scores.length));
    for (const k of labels) shares.get(labels.length)[k] += p;
  });
  for (let length = 1; length <= scores.length; length++) {
    const gains = new Float64Array(scores.length);
    for (const [size, share] of shares) share.forEach((p, k) => (gains[k] += (2 / (size + length)) * p));
    const largest = rank(gains).slice(0, length);
    const expected = largest.reduce((sum, k) => sum + gains[k], 0);
    if (expected > best) [best, chosen] = [expected, largest];
  }
  return chosen;
}

// Eq. 19: the known label vector of least loss; of equals the first, which is the most frequent one.
function findLeast(vectors, scores, objective) {
  let losses, limit;
  if (objective === "example-wise-logistic") {
    losses = sumExponentials(vectors, scores);
    limit = minimum(losses) * (1 + TIE);
  } else {
    const hinge = objective === "example-wise-squared-hinge";
    const residual = (f, y) => (hinge ? Math.max(0, 1 - (2 * y - 1) * f) : f - (2 * y - 1));
    losses = vectors.map((y) => Math.sqrt(scores.reduce((sum, f, k) => sum + residual(f, y[k]) ** 2, 0)));
    const smallest = minimum(losses);
    limit = smallest + TIE * Math.min(smallest, 1);
  }
  return losses.findIndex((loss) => loss <= limit);
}

// sum_k exp(-y_k f_k) for each vector, up to a common factor: its logarithm orders Eq. 7.
function sumExponentials(vectors, scores) {
  const shift = scores.reduce((most, f) => Math.max(most, Math.abs(f)), 0);
  const ifRelevant = scores.map((f) => Math.exp(-f - shift));
  const ifNot = scores.map((f) => Math.exp(f - shift));
  const sums = vectors.map((y) => y.reduce((sum, relevant, k) => sum + (relevant ? ifRelevant[k] : ifNot[k]), 0));
  if (minimum(sums) >= 1e-280) return sums;
  const logarithms = vectors.map((y) => {
    // scores so large that the sums are rounded to 0
    const exponents = Array.from(scores, (f, k) => (y[k] ? -f : f));
    const most = Math.max(...exponents);
    return most + Math.log(exponents.reduce((sum, e) => sum + Math.exp(e - most), 0));
  });
  const smallest = minimum(logarithms);
  return logarithms.map((logarithm) => Math.exp(Math.min(logarithm - smallest, 700)));
}
