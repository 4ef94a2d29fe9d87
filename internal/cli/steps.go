package cli

import (
	"github.com/urfave/cli/v2"

	"gitland/internal/policy"
	"gitland/internal/step"
)

// stepFlags are those by which steps are typed; what says when they run.
func stepFlags(what string) []cli.Flag {
	return []cli.Flag{
		texts("step", "`NAME=RUN` "+what+"; --step-check NAME=CHECK"),
		beside(texts("step-check", "`NAME=CHECK` that says whether the step is done")),
	}
}

// givenSteps are the steps that were typed, with their checks.
func (c *call) givenSteps() ([]policy.Step, error) {
	return step.Parse(c.opts.StringSlice("step"), c.opts.StringSlice("step-check"))
}

// setting is what steps run in. What they print is no data of ours.
func (c *call) setting() step.Setting {
	return step.Setting{Environ: c.env.Environ, Stdout: c.env.Stderr, Stderr: c.env.Stderr, Tell: c.telling()}
}
