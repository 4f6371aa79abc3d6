(() => {
  "use strict";
  const narrow = window.matchMedia("screen and (max-width: 820px)");
  const paperWidth = 690;
  // Pixels between rows of panels, above and below them all, and of a row of the legend.
  const [between, above, below, legendRow] = [88, 38, 76, 21];
  const expertRow = 15; // pixels
  const config = {
    responsive: true,
    displaylogo: false,
    showTips: false,
    // Plotly would offer to upload a chart to its company's server.
    showSendToCloud: false,
    plotlyServerURL: "",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };
  const grey = "#8a8f98"; // seen on white and on black
  const axis = {
    zeroline: false, showline: true, linecolor: grey, gridcolor: "#e3e6ea",
    separatethousands: true, ticks: "outside", ticklen: 4, tickcolor: grey, nticks: 7,
    title: { standoff: 6 },
  };
  // Of an axis of that kind, beyond its title and range.
  const kinds = {
    number: {},
    rounds: {
      tickangle: 0, hoverformat: ",d", tickformat: ",d",
      unifiedhovertitle: { text: "round %{x:,d}" },
    },
    scales: { exponentformat: "power", tickformat: "", unifiedhovertitle: { text: "c = %{x:,~g}" } },
    experts: {
      type: "category", tickfont: { size: 11 }, nticks: 0, showgrid: false, fixedrange: true,
      automargin: true,
    },
  };
  // Plotly's names of matplotlib's markers.
  const symbols = {
    o: "circle", s: "square", "^": "triangle-up", D: "diamond", v: "triangle-down", P: "cross", X: "x",
  };
  const lineWidth = 2;
  const inactive = "#e3ddd3";
  // ColorBrewer's Blues, as in the static figures.
  const blues = ["#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#084594"];
  const template = {
    layout: {
      font: {
        family: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
        size: 12,
      },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      hovermode: "x unified",
      dragmode: "zoom",
      showlegend: true,
      legend: {
        orientation: "h", x: 0, xanchor: "left", y: 1, yref: "container", yanchor: "top",
        tracegroupgap: 0, bgcolor: "rgba(0,0,0,0)",
      },
      xaxis: { ...axis, spikethickness: 1, spikecolor: grey, spikedash: "dot" },
      yaxis: axis,
      // Titles of panels, and drifts.
      annotationdefaults: {
        x: 0, y: 1, xanchor: "left", yanchor: "bottom", yshift: 4, align: "left", showarrow: false,
      },
      shapedefaults: { type: "line", y0: 0, y1: 1, line: { color: grey, width: 1, dash: "dot" } },
      coloraxis: {
        colorscale: blues.map((colour, place) => [place / (blues.length - 1), colour]),
        colorbar: {
          orientation: "h", title: { text: "weight", side: "right" }, thickness: 10, len: 0.7,
          x: 0, xanchor: "left", y: 1, yref: "container", yanchor: "top", nticks: 5, tickangle: 0,
          outlinewidth: 0,
        },
      },
    },
  };
  // A text that plotly shows unchanged: it reads some tags and entities.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const symbol = ({ style, hollow }) => symbols[style.marker] + (hollow ? "-open" : "");

  // The traces of a line: a mean with its band, or with error bars and a ring, or a dot.
  const bandTraces = ({ y }, { style, band }, shared, varies) => {
    if (!varies) {
      return [];
    }
    const [low, high] = [-1, 1].map((side) => band.mean.map((mean, place) => {
      const edge = mean + side * band.deviation[place];
      return y.log ? Math.max(edge, 0.1 * mean) : edge;
    }));
    // Two lines that are not seen, and the colour between them.
    const border = {
      ...shared, x: band.x, mode: "lines", showlegend: false, hoverinfo: "skip",
      line: { width: 0, color: style.colour },
    };
    return [{ ...border, y: low }, { ...border, y: high, fill: "tonexty", fillcolor: `${style.colour}2e` }];
  };
  const lineTraces = (panel, line, listed) => {
    const { style, band, value } = line;
    const { x, mean, deviation } = band;
    const shared = { legendgroup: plain(line.method), ...(line.hidden && { visible: "legendonly" }) };
    const varies = deviation.some((each) => each > 0);
    const trace = {
      ...shared,
      name: plain(line.label),
      showlegend: listed,
      mode: "lines",
      x,
      y: mean,
      line: {
        color: style.colour, width: lineWidth * style.width,
        dash: style.dash.map((part) => `${lineWidth * part}px`).join(",") || "solid",
      },
      hovertemplate: "%{y:,.4~g}" + (varies ? " ± %{customdata:,.2~g}" : ""),
      ...(varies && { customdata: deviation }),
    };
    if (panel.form === "bands") {
      return [...bandTraces(panel, line, shared, varies), trace];
    }
    // Markers with error bars; with a ring at the chosen c.
    const joined = panel.form === "bars";
    trace.mode = joined ? "lines+markers" : "markers";
    trace.marker = { symbol: symbol(line), size: joined ? 8 : 10, color: style.colour };
    if (varies) {
      trace.error_y = { array: deviation, thickness: 1.2, width: joined ? 3 : 4 };
    }
    if (!joined) {
      trace.hovertemplate = `${value} for %{x:,.3~g}`;
    }
    const ring = {
      ...shared, mode: "markers", showlegend: false, hoverinfo: "skip", x: [x[line.chosen]],
      y: [mean[line.chosen]], marker: { symbol: "circle-open", size: 16, color: style.colour },
    };
    return line.chosen === null ? [trace] : [trace, ring];
  };
  // A map of the weights, and one of where experts were not active.
  const weightTraces = ({ weights: { rounds, values }, y }) => {
    const words = "round %{x:,d}<br>%{y}<br>";
    const shared = { type: "heatmap", x: rounds, y: y.names.map(plain), hoverongaps: false };
    return [
      { ...shared, z: values, coloraxis: "coloraxis", hovertemplate: `${words}weight %{z:.3f}<extra></extra>` },
      {
        ...shared,
        z: values.map((row) => row.map((weight) => (weight === null ? 0 : null))),
        colorscale: [[0, inactive], [1, inactive]],
        showscale: false,
        hovertemplate: `${words}not active<extra></extra>`,
      },
    ];
  };
  const axisOf = ({ title, kind, log, low, high, names }, values, height) => {
    const made = { ...structuredClone(kinds[kind]), ...(title && { title: { text: plain(title) } }) };
    if (log) {
      // Powers of ten, unless they would leave the axis without a number.
      const wide = Math.max(...values) >= 10 * Math.min(...values);
      Object.assign(made, { type: "log", tickformat: ",", automargin: true }, wide && { dtick: 1 }, kinds[kind]);
    }
    if (low !== null && high !== null) {
      made.range = [low, high];
    }
    if (kind === "experts") {
      made.dtick = Math.ceil((expertRow * names.length) / height);
    }
    return made;
  };
  // The figure as plotly draws it.
  const chartOf = ({ panels, largest }) => {
    const [{ weights, form }] = panels;
    const most = Math.max(...panels.map((panel) => panel.y.names.length));
    const columns = weights ? 1 : Math.min(4, panels.length);
    let height = panels.length > 1 || form === "dots" ? 260 : 300;
    if (weights) {
      height = Math.max(70, Math.min(expertRow * most, 400));
    }
    const layout = { annotations: [], shapes: [], coloraxis: { cmin: 0, cmax: largest } };
    if (weights || form === "dots") {
      layout.hovermode = "closest";
    }
    const traces = panels.flatMap((panel, place) => {
      const number = place ? place + 1 : "";
      const axes = { xaxis: `x${number}`, yaxis: `y${number}` };
      const values = (name) => panel.lines.flatMap(({ band }) => band[name]);
      const across = axisOf(panel.x, values("x"), height);
      if (columns > 1 && panel.x.kind === "rounds") {
        across.nticks = 5;
      }
      // The rounds are named in the caption: between maps there is no room.
      layout[`xaxis${number}`] = { ...across, ...(weights && { showgrid: false, title: null }) };
      layout[`yaxis${number}`] = axisOf(panel.y, values("mean"), height);
      const domain = { xref: `${axes.xaxis} domain`, yref: `${axes.yaxis} domain` };
      layout.annotations.push({ text: `<b>${plain(panel.title).replace(/\n/g, "<br>")}</b>`, ...domain });
      for (const t of panel.drifts) {
        layout.shapes.push({ ...domain, xref: axes.xaxis, x0: t, x1: t, layer: weights ? "above" : "below" });
      }
      const drawn = panel.weights
        ? weightTraces(panel)
        : panel.lines.flatMap((line) => lineTraces(panel, line, place === 0));
      return drawn.map((trace) => ({ ...axes, ...trace }));
    });
    return { traces, layout, columns, height };
  };
  const charts = Array.from(document.querySelectorAll(".chart"), (place) => ({
    place,
    ...chartOf(JSON.parse(document.getElementById(place.dataset.source).textContent)),
  }));
  const layout = (chart) => {
    const made = structuredClone(chart.layout);
    const cells = Object.keys(made).filter((name) => name.startsWith("yaxis"));
    const columns = narrow.matches ? 1 : chart.columns;
    const rows = Math.ceil(cells.length / columns);
    // A legend's entries, in pixels; they do not fill its rows. Where there are none, titles may have
    // two rows.
    const listed = chart.traces.filter((trace) => trace.showlegend);
    const length = listed.reduce((sum, { name }) => sum + 7 * name.length + 50, 0);
    const top = above + legendRow * Math.max(1, Math.ceil(length / ((narrow.matches ? 0.6 : 0.8) * chart.place.clientWidth)));
    return {
      ...made,
      height: rows * (chart.height + between) - between + top + below,
      margin: { l: 62, r: 22, t: top, b: below, pad: 0 },
      grid: {
        rows, columns, pattern: "independent", xgap: 0.27, ygap: between / (chart.height + between),
      },
      uirevision: "kept",
      template,
    };
  };

  for (const chart of charts) {
    Plotly.newPlot(chart.place, chart.traces, layout(chart), config);
  }
  narrow.addEventListener("change", () => {
    for (const chart of charts) {
      Plotly.react(chart.place, chart.place.data, layout(chart), config);
    }
  });
  window.addEventListener("beforeprint", () => {
    for (const chart of charts) {
      Plotly.relayout(chart.place, { width: paperWidth });
    }
  });
  window.addEventListener("afterprint", () => {
    for (const chart of charts) {
      Plotly.relayout(chart.place, { width: null, autosize: true });
    }
  });
})();
