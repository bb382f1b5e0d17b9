"""A run as Markdown and as a plot."""

from benchmarks.configurations import ENGINE, OP, PASSES, PEERS
from benchmarks.figures import figures

PEER_TITLES = {
    "pytorch": "PyTorch",
    "onnxruntime": "ONNX Runtime",
    "keras": "Keras",
    "keras_xla": "Keras, XLA",
}


def markdown(run, command, quick=False):
    """The whole report: machine, figures, one table per pass and number of threads, omissions.

    quick: without the figures, which tiny sizes say nothing about.
    """
    parts = [_machine(run), f"Command: `{command}`", *([] if quick else [_figures(run)])]
    for threads in reversed(run.thread_counts):
        parts += [_table(run, pass_, threads) for pass_ in PASSES]
    parts.append(_omissions(run))
    return "\n\n".join(part for part in parts if part) + "\n"


def _machine(run):
    machine = run.machines[run.thread_counts[-1]]
    lines = [f"{machine['cpu']}, {machine['cores']} cores; ours runs {machine['instruction_set']}."]
    lines.append(
        "Versions: " + ", ".join(f"{name} {text}" for name, text in machine["versions"].items())
    )
    rows = ["| threads | FMA peak, float | memory read |", "|---|---|---|"]
    for threads, machine in sorted(run.machines.items()):
        peak, memory = machine["peak_gflops"], machine["memory_gbytes_per_second"]
        rows.append(
            f"| {threads} | {_number(peak, '.0f', ' GFLOP/s')} "
            f"| {_number(memory, '.1f', ' GB/s')} |"
        )
    return "\n".join(lines) + "\n\n" + "\n".join(rows)


def _figures(run):
    rows = ["| figure | aim | measured | |", "|---|---|---|---|"]
    for figure in figures(run):
        if figure.value is None:
            continue
        sign = "≤" if figure.at_most else "≥"
        outcome = "reached" if figure.reached else "not reached"
        rows.append(
            f"| {figure.what} | {sign} {figure.bound:.2f} | {figure.value:.2f} | {outcome} |"
        )
    return "\n".join(rows) if len(rows) > 2 else ""


def _table(run, pass_, threads):
    names = [name for name in run.names if run.find(name, pass_, threads, OP)]
    names = names or [name for name in run.names if run.find(name, pass_, threads, ENGINE)]
    if not names:
        return ""
    titles = ["", "case", "op, ms", "GFLOP/s", "of peak", "engine, ms", "GFLOP/s", "of peak"]
    titles += [f"{PEER_TITLES[peer]}, ms (ratio)" for peer in PEERS]
    rows = [f"### {pass_.capitalize()}, threads: {threads}", ""]
    rows += ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    for name in names:
        cells = [name, _case(run, name)]
        for entrant in (OP, ENGINE):
            key = (name, pass_, threads, entrant)
            seconds, share = run.seconds(*key), run.share_of_peak(*key)
            cells.append(_milliseconds(seconds))
            cells.append(_number(run.gflops(*key), ".1f"))
            cells.append(_number(share and 100 * share, ".0f", " %"))
        for peer in PEERS:
            ratio = run.ratio(name, pass_, threads, OP, peer)
            cells.append(
                f"{_milliseconds(run.seconds(name, pass_, threads, peer))} ({ratio:.2f})"
                if ratio
                else "–"
            )
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _case(run, name):
    case = next(result["case"] for result in run.results if result["configuration"] == name)
    text = f"{case['rnn_mode']} B{case['B']} T{case['T']} I{case['I']} H{case['H']} L{case['L']}"
    text += " D2" if case["direction"] == "bidirectional" else ""
    text += f" P{case['num_proj']}" if case["num_proj"] else ""
    text += " lengths" if case["lengths"] != "none" else ""
    return text + ("" if case["dtype"] == "float32" else f" {case['dtype']}")


def _omissions(run):
    """Who is missing, once for each reason."""
    reasons = {}
    for result in run.results:
        for key in ("skipped", "failed"):
            if key in result:
                who = f"{result['configuration']} {result['pass']}"
                reasons.setdefault((result["entrant"], key, result[key]), []).append(who)
    rows = [
        f"- {entrant}, {key}: {text} ({', '.join(dict.fromkeys(where))})"
        for (entrant, key, text), where in reasons.items()
    ]
    return "\n".join(["Not measured:", "", *rows]) if rows else ""


def _milliseconds(seconds):
    if seconds is None:
        return "–"
    milliseconds = 1e3 * seconds
    return f"{milliseconds:.3f}" if milliseconds < 1 else f"{milliseconds:.4g}"


def _number(value, form, unit=""):
    return "–" if value is None else f"{value:{form}}{unit}"


def plot(run, path):
    """A PNG: for each configuration and peer, the peer's time over the op's, most threads."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    threads = run.thread_counts[-1]
    figure, axes = plt.subplots(
        len(PASSES), 1, figsize=(10, 7), sharex=True, sharey=True, layout="constrained"
    )
    names = [
        name
        for name in run.names
        if any(run.ratio_to_fastest(name, pass_, threads) for pass_ in PASSES)
    ]
    width = 0.8 / len(PEERS)
    for axis, pass_ in zip(axes, PASSES, strict=True):
        for index, peer in enumerate(PEERS):
            ratios = [run.ratio(name, pass_, threads, OP, peer) for name in names]
            places = [place for place, ratio in enumerate(ratios) if ratio]
            if places:
                axis.bar(
                    [place + (index - (len(PEERS) - 1) / 2) * width for place in places],
                    [ratios[place] - 1 for place in places],
                    width,
                    bottom=1,
                    label=PEER_TITLES[peer],
                    color=f"C{index}",
                )
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_yscale("log", base=2)
        axis.yaxis.set_major_formatter("{x:g}")
        axis.set_ylabel("time over ours")
        axis.set_title(f"{pass_}, threads: {threads}")
        axis.set_xticks(range(len(names)), names)
    handles, labels = axes[0].get_legend_handles_labels()
    if handles:
        axes[0].legend(handles, labels, ncols=len(PEERS), loc="upper right")
    figure.savefig(path, dpi=120)
    plt.close(figure)
