"""`nram tasks`: what can be learned."""

from nram.cli.output import add_json, print_json, table


def add_parser(verbs) -> None:
    parser = verbs.add_parser(
        "tasks",
        help="list the tasks",
        description="List the tasks: what each asks for and how its memory is laid out.",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments) -> int:
    from nram.tasks import get_task, task_names

    tasks = [get_task(name) for name in task_names()]
    if arguments.json:
        print_json(
            [
                {
                    "name": task.name,
                    "summary": task.summary,
                    "layout": task.layout,
                    "min_complexity": task.min_complexity,
                    "trained_up_to": task.trained_up_to,
                    "step_limit": {
                        "per_item": task.step_limit.per_item,
                        "constant": task.step_limit.constant,
                    },
                    "least_memory": task.least_memory(task.trained_up_to),
                }
                for task in tasks
            ]
        )
        return 0
    rows = [["task", "n", "T(n)", "what is asked for"]]
    for task in tasks:
        limit = task.step_limit
        steps = f"{limit.per_item}n+{limit.constant}" if limit.per_item > 1 else f"n+{limit.constant}"
        rows.append(
            [
                task.name,
                f"{task.min_complexity}..{task.trained_up_to}",
                steps if limit.per_item else str(limit.constant),
                task.summary,
            ]
        )
    print(table(rows))
    print("\nn: complexities of the paper's training; T(n): default step limit. --json also gives the memory layouts.")
    return 0
