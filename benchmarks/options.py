"""The options that the benchmark hands on to its workers."""

from benchmarks import configurations

CONTESTANTS = (configurations.OP, configurations.ENGINE, *configurations.PEERS)


def add_shared(parser):
    """Adds them to an ArgumentParser."""
    parser.add_argument("--only", type=_words, help="configurations, e.g. c1,c13; default: all")
    parser.add_argument(
        "--contestants",
        type=_words,
        default=CONTESTANTS,
        help=f"who takes part, default: {','.join(CONTESTANTS)}",
    )
    parser.add_argument("--pass", dest="passes", choices=configurations.PASSES)
    parser.add_argument(
        "--rounds", type=int, default=9, help="times for each, of which the median counts"
    )
    parser.add_argument(
        "--sample-seconds",
        type=float,
        default=0.05,
        help="for how long a short call is repeated for one time",
    )
    parser.add_argument("--scaling", action="store_true", help="c3 at other T and B as well")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="tiny sizes, two rounds: does everything run and agree? The times mean nothing",
    )


def check(arguments):
    """Brings the arguments into order; raises ValueError for what cannot be."""
    if arguments.quick:
        arguments.rounds, arguments.sample_seconds = 2, 0.0
    if arguments.rounds < 1:
        raise ValueError(f"--rounds must be at least 1, was {arguments.rounds}")
    unknown = sorted(set(arguments.contestants) - set(CONTESTANTS))
    if unknown:
        raise ValueError(f"--contestants must be of {', '.join(CONTESTANTS)}, was {unknown}")
    chosen_configurations(arguments)


def chosen_configurations(arguments):
    return configurations.select(arguments.only, arguments.quick, arguments.scaling)


def words(arguments):
    """The command line from which a worker reads the same arguments."""
    result = ["--rounds", str(arguments.rounds), "--sample-seconds", str(arguments.sample_seconds)]
    result += ["--contestants", ",".join(arguments.contestants)]
    result += ["--only", ",".join(arguments.only)] if arguments.only else []
    result += ["--pass", arguments.passes] if arguments.passes else []
    result += ["--scaling"] if arguments.scaling else []
    result += ["--quick"] if arguments.quick else []
    return result


def _words(text):
    return text.split(",")
