(() => {
  "use strict";
  const narrow = window.matchMedia("screen and (max-width: 820px)");
  const paperWidth = 690;
  // Pixels between rows of panels, above and below them all, and of a row of the legend.
  const [between, above, below, legendRow] = [88, 38, 76, 21];
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
  // What a chart leaves to the kind that it gives an axis.
  const kinds = {
    rounds: {
      title: { text: "round" }, tickangle: 0, hoverformat: ",d", tickformat: ",d",
      unifiedhovertitle: { text: "round %{x:,d}" },
    },
    scales: {
      title: { text: "scale c of the step sizes" }, type: "log", exponentformat: "power", dtick: 1,
      unifiedhovertitle: { text: "c = %{x:,~g}" },
    },
    regret: {
      title: { text: "regret (loss)" }, rangemode: "tozero", zeroline: true, zerolinecolor: grey,
      nticks: 5, showgrid: false,
    },
    linear: {},
    log: { type: "log", dtick: 1, tickformat: ",", automargin: true },
    methods: {
      type: "category", categoryorder: "array", showline: false, ticks: "", ticklabelstandoff: 6,
      nticks: 0, fixedrange: true, automargin: true,
    },
    experts: {
      type: "category", tickfont: { size: 11 }, nticks: 0, showgrid: false, fixedrange: true,
      automargin: true,
    },
  };
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
  const charts = Array.from(document.querySelectorAll(".chart"), (place) => ({
    place,
    ...JSON.parse(document.getElementById(place.dataset.source).textContent),
  }));
  const layout = (chart) => {
    const made = structuredClone(chart.layout);
    const cells = Object.keys(made).filter((name) => name.startsWith("yaxis"));
    const columns = narrow.matches ? 1 : chart.columns;
    const rows = Math.ceil(cells.length / columns);
    for (const [name, { kind, ...own }] of Object.entries(made)) {
      if (kind) {
        made[name] = { ...structuredClone(kinds[kind]), ...own };
      }
      if (kind === "methods") {
        made[name].showticklabels = cells.indexOf(name) % columns === 0;
      }
    }
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
