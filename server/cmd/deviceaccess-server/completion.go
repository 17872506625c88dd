package main

import (
	"slices"

	"github.com/urfave/cli/v3"
)

// completionCommand adapts the command of package cli that prints completion scripts.
func completionCommand(c *cli.Command) {
	c.Hidden = false
	c.Usage = "print a script that completes commands and flags in bash, zsh, or fish"
	c.Description = "bash:  source <(deviceaccess-server completion bash), in ~/.bashrc\n" +
		"zsh:   source <(deviceaccess-server completion zsh), in ~/.zshrc\n" +
		"fish:  deviceaccess-server completion fish > ~/.config/fish/completions/deviceaccess-server.fish"
	c.Commands = slices.DeleteFunc(c.Commands, func(shell *cli.Command) bool { return shell.Name == "pwsh" })
	for _, shell := range c.Commands {
		shell.Usage = "print the script for " + shell.Name
	}
	strict(c)
}
