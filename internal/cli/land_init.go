package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"gitland/internal/object"
	"gitland/internal/policy"
	"gitland/internal/session"
	"gitland/internal/setup"
)

func initCommand() *command {
	return &command{
		name:     "init",
		synopsis: "[OPTION...]",
		summary:  "set this clone up for landings, and the repository that it lands in",
		about: `
Looks whether the remote can do what landings need, writes down the choice of
remote and target in this clone's configuration, installs the pre-push hook, and
puts the target branch under its lease. What is done already stays as it is: run
it in every clone, and again whenever you like.

Where the target has a .gitland, it shows the commands in it that this clone has
not run before, and asks whether it may. Without a terminal, --accept says yes.`,
		examples: `
git land init
git land init --remote upstream --onto develop
git land init --accept`,
		exits: []int{4, 5, 8, 9},
		flags: []cli.Flag{
			boolean("accept", "let the commands of .gitland run in this clone"),
			ontoFlag(), remoteFlag(), jsonFlag(),
		},
		run: initialize,
	}
}

type initJSON struct {
	Remote     string         `json:"remote"`
	Branch     object.Ref     `json:"branch"`
	Lease      string         `json:"lease"`
	Steps      []setup.Step   `json:"steps"`
	Unaccepted []commandsJSON `json:"unaccepted,omitempty"`
}

type commandsJSON struct {
	Key     string `json:"key"`
	Command string `json:"command"`
}

func initialize(ctx context.Context, c *call) error {
	if err := c.noOperands("git land init --onto WORD"); err != nil {
		return err
	}
	repo, err := c.repo(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	r := setup.Request{Repo: repo, Remote: c.opts.String("remote"), Branch: c.want("").Branch, Now: c.env.Now, Notice: c.note}
	if r.Tool, err = ownPath(); err != nil {
		return err
	}
	r.Step = func(s setup.Step) {
		if !c.opts.Bool("json") {
			c.out.printf("%s %-9s %s\n", paint(green, fmt.Sprintf("%-5s", s.Done)), s.Name, s.Text)
		}
	}
	done, err := setup.Run(ctx, r)
	if err != nil {
		c.partial = map[string]any{"steps": done.Steps}
		return err
	}
	if accept, err := c.ask(ctx, done); err != nil {
		return err
	} else if accept {
		if err := done.Accept(session.Open(repo.CommonDir), r.Step); err != nil {
			return err
		}
	}
	if c.opts.Bool("json") {
		j := initJSON{Remote: done.Remote, Branch: done.Branch, Lease: done.Lease, Steps: done.Steps}
		for _, one := range done.Unaccepted {
			j.Unaccepted = append(j.Unaccepted, commandsJSON{one.Key, one.Text})
		}
		return c.out.json(j)
	}
	switch {
	case len(done.Unaccepted) > 0:
		c.err.printf("%s %s\n", paint(yellow, "hint:"), c.line(c.with("--accept")...)+"   (until then they do not run here, and git land refuses)")
	case !done.Policy:
		c.err.printf("%s git config -f %s land.check.test.command 'make test'   (landed, it is the team's check, which git land runs by itself)\n", paint(yellow, "hint:"), policy.File)
	}
	return nil
}

// ask shows the commands that do not run in this clone yet, and reports whether the
// user accepts them.
func (c *call) ask(ctx context.Context, done setup.Result) (accept bool, err error) {
	if len(done.Unaccepted) == 0 {
		return false, nil
	}
	c.err.printf("%s on %s at %s has commands that have not run in this clone:\n", policy.File, done.Branch.Branch(), done.Remote)
	for _, one := range done.Unaccepted {
		c.err.printf("    %s = %s\n", one.Key, one.Text)
	}
	if c.opts.Bool("accept") || !c.env.StdinTTY || !c.env.StderrTTY {
		return c.opts.Bool("accept"), nil
	}
	c.err.printf("Let them run here from now on, as they are? [y/N] ")
	answer, err := readLine(ctx, c.env.Stdin)
	if !strings.HasSuffix(answer, "\n") {
		c.err.printf("\n")
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", err
}

// readLine reads one line that a person types, unless ctx ends before.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	typed := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n') // an end of input is no answer
		typed <- line
	}()
	select {
	case line := <-typed:
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
