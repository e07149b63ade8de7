// --- The page: tabs, addresses, light and dark -----------------------------------------------------------------------

function prepare(model) {
  const { rules, features, nRules, nLabels } = model;
  model.mostCovered = rules.coverage.reduce((a, b) => Math.max(a, b), 0);
  model.totalGain = rules.gain.reduce((sum, gain) => sum + Math.max(gain, 0), 0);
  features.short = shortenNames(features.names);
  model.labels.short = shortenNames(model.labels.names);
  model.featureRules = features.names.map(() => []);
  model.labelRules = Array.from({ length: nLabels }, () => []);
  for (let t = 0; t < nRules; t++) {
    for (const feature of new Set(listConditions(model, t).map((condition) => condition.feature)))
      model.featureRules[feature].push(t);
    for (const { label } of listScores(model, t)) model.labelRules[label].push(t);
  }
  model.usedFeatures = [...features.names.keys()].filter((f) => model.featureRules[f].length);
  model.mostLabelRules = Math.max(1, ...model.labelRules.map((own) => own.length));
  model.rankedFeatures = rankFeatures(model);
  const ink = model.image && model.examples ? model.examples.columns : [];
  model.mostInk = ink.reduce((most, column) => column.reduce((a, b) => (b > a ? b : a), most), 1e-300);
  return model;
}

const VIEWS = [
  // tab, address, view, what is shown if the address names nothing
  ["Overview", "overview", viewOverview, () => null],
  ["Rules", "rules", viewRules, () => null],
  ["Labels", "label", viewLabels, () => 0],
  ["Features", "feature", viewFeatures, (model) => model.rankedFeatures[0]?.feature ?? 0],
  ["Examples", "example", viewExamples, (model) => model.examples?.rows[0] ?? 0],
];

function start(model) {
  const main = document.getElementById("main");
  const tabs = document.getElementById("tabs");
  const classes = new Set(model.decoding.classes).size;
  const subject =
    model.kind === "classes"
      ? `${classes} class${classes === 1 ? "" : "es"}`
      : count(model.nLabels, model.kind === "labels" ? "label" : "target");
  document.title = model.title;
  document.getElementById("title").replaceChildren(element("bdi", { title: model.title }, model.title));
  document.getElementById("subtitle").textContent =
    `${count(model.nRules, "rule")} about ${subject}, on ${count(model.usedFeatures.length, "feature")}`;
  const views = VIEWS.map(([title, address, make, initial], i) => {
    const name = i === 2 && model.kind !== "labels" ? { classes: "Classes", numbers: "Targets" }[model.kind] : title;
    const tab = button(
      name,
      () => {
        location.hash = last[i] ?? address;
      },
      { role: "tab", id: `tab-${address}`, "aria-controls": `panel-${address}`, onkeydown: (event) => move(event, i) },
    );
    const panel = element("div", {
      role: "tabpanel",
      id: `panel-${address}`,
      "aria-labelledby": tab.id,
      tabindex: -1,
      hidden: true,
    });
    tabs.append(tab);
    main.append(panel);
    return { address, make, initial, tab, panel, view: null };
  });
  const last = []; // the address that each tab showed last

  function move(event, i) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const target =
      event.key === "Home"
        ? 0
        : event.key === "End"
          ? views.length - 1
          : step
            ? (i + step + views.length) % views.length
            : null;
    if (target === null) return;
    event.preventDefault();
    views[target].tab.focus();
    views[target].tab.click();
  }

  let shown = null;
  function follow() {
    const [address, key] = location.hash.slice(1).split("/");
    let i = views.findIndex((view) => view.address === address);
    if (i < 0) i = shown === null ? 0 : views.indexOf(shown);
    const current = views[i];
    if (!current.view) {
      // a view is made when it is first wanted
      current.view = current.make(model);
      current.panel.append(current.view.node);
    }
    const number = key === undefined || !/^[0-9]{1,9}$/.test(key) ? current.initial(model) : Number(key);
    const limit = { label: model.nLabels, feature: model.features.names.length }[current.address] ?? Infinity;
    current.view.show(number < limit ? number : current.initial(model));
    last[i] = current.address + (key === undefined ? "" : `/${key}`);
    for (const view of views) {
      view.panel.hidden = view !== current;
      view.tab.setAttribute("aria-selected", String(view === current));
      view.tab.tabIndex = view === current ? 0 : -1;
    }
    if (shown !== null && shown !== current) {
      window.scrollTo(0, 0);
      // whoever followed a link must not be left in what is hidden now
      if (!tabs.contains(document.activeElement)) current.panel.focus({ preventScroll: true });
    }
    shown = current;
  }
  window.addEventListener("hashchange", follow);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  follow();
}

function initTheme() {
  const root = document.documentElement;
  const key = "boomer-theme";
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  try {
    const stored = localStorage.getItem(key);
    if (stored === "light" || stored === "dark") root.dataset.theme = stored;
  } catch {
    /* a browser may not let a file store anything */
  }
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    announce(`${root.dataset.theme} colours`);
    try {
      localStorage.setItem(key, root.dataset.theme);
    } catch {
      /* then it holds for this visit */
    }
  });
}

initTheme();
start(prepare(readModel(JSON.parse(document.getElementById("summary").textContent))));
