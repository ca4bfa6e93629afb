"""The command `pequod` and its sub-commands."""

import typer

from pequod.cli import (
    dev,
    install,
    module,
    opchain,
    operator,
    plan,
    render,
    rollback,
    tree,
    validate,
)

app = typer.Typer(
    name="pequod",
    help="One Kubernetes operator platform: five API families in front of one engine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(dev.app, name="dev")
app.add_typer(module.app, name="module")
app.add_typer(opchain.app, name="opchain")
app.command("render")(render.render)
app.command("validate")(validate.validate)
app.command("plan")(plan.plan)
app.command("tree")(tree.tree)
app.command("rollback")(rollback.rollback)
app.command("install")(install.install)
app.command("operator")(operator.operator)


def main() -> None:
    """Run the command line."""
    app()
