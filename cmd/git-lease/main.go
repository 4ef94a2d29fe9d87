// The command git-lease is "git lease".
package main

import (
	"context"
	"os"

	"gitland/internal/cli"
)

func main() { os.Exit(cli.GitLease(context.Background(), os.Args[1:], cli.System())) }
