// The command git-land is "git land".
package main

import (
	"context"
	"os"

	"gitland/internal/cli"
)

func main() { os.Exit(cli.GitLand(context.Background(), os.Args[1:], cli.System())) }
