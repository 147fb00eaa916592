"""`odradek completion`: the shell completion script for commands, options and topics."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_WHERE = {
    "bash": 'eval "$(odradek completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(odradek completion zsh)" in ~/.zshrc',
    "fish": "odradek completion fish > ~/.config/fish/completions/odradek.fish",
}


@click.command("completion", epilog="\b\n" + "\n".join(f"{shell}: {line}" for shell, line in _WHERE.items()))
@click.argument("shell", type=click.Choice([*_WHERE]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    found = get_completion_class(shell)
    assert found is not None
    root = ctx.find_root()
    name = root.info_name or "odradek"
    click.echo(found(root.command, {}, name, f"_{name.upper().replace('-', '_')}_COMPLETE").source())
