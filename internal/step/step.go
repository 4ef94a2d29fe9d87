// Package step owns the steps of a motion: the writes to other stores that follow a
// landing, or that make up a motion which lands nothing, one after another under one
// lease.
//
// It promises that each step is bracketed, in the journal before its command starts and
// on the chain when it is known how it went; that none starts before those in front of
// it are done; that the lease is held until the last one is, whoever dies; and that a
// step which may have been done is not done again before its check, or a person, has
// said that it was not. It refuses to guess: what neither check nor journal can tell is
// unknown, and stays the next step.
package step

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/note"
	"gitland/internal/policy"
)

// A Step is one step of a motion, as a journal keeps it.
type Step struct {
	Name  string `json:"name"`
	Run   string `json:"run"`             // for sh -c
	Check string `json:"check,omitempty"` // likewise: exit code 0 is done, 1 is not done; may be empty

	// Begun says that the command was started, and may have done anything.
	Begun bool `json:"begun,omitempty"`
	// Witness is what its command has open while it runs, whether or not we do.
	Witness ulid.ULID `json:"witness,omitzero"`
	// Elsewhere says that this is only what may be: others have gone on with the motion.
	Elsewhere bool `json:"begun_elsewhere,omitempty"`
	// Outcome is how it went last, whether or not the chain says so; empty where that is
	// not known, or it was never begun.
	Outcome event.Outcome `json:"outcome,omitempty"`
	TookMS  uint64        `json:"duration_ms,omitempty"`
	Exit    int           `json:"exit,omitempty"` // of the command, or of a check that was at a loss
}

// Names are the names of steps as an event has them.
func Names(steps []Step) string {
	var names []string
	for _, s := range steps {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// CatchUp takes from the chain which of the steps are done. With others, who have gone on
// with the motion, the first that is not done may have been begun by them.
func CatchUp(steps []Step, m *chain.Motion, others bool) {
	for i := range steps {
		s := &steps[i]
		last := m.Last(s.Name)
		switch {
		case s.Outcome.Ends():
		case last != nil && last.Outcome.Ends():
			s.Begun, s.Outcome, s.TookMS, s.Exit = true, last.Outcome, last.Took, 0
		case others:
			s.Begun, s.Elsewhere, s.Outcome, s.TookMS, s.Exit = true, true, "", 0, 0
			return
		}
	}
}

// Results are steps as the record of a landing has them.
func Results(steps []Step) []note.Step {
	var list []note.Step
	for _, s := range steps {
		list = append(list, note.Step{Name: s.Name, Outcome: s.Outcome, DurationMS: s.TookMS})
	}
	return list
}

// New are the steps that a policy names, and behind them those that were typed. It
// refuses, with class Usage, a step without a command, one that is named twice, and more
// of them than an event can name.
func New(team []policy.Step, typed ...policy.Step) ([]Step, error) {
	var steps []Step
	for _, s := range slices.Concat(team, typed) {
		switch {
		case s.Run.Text == "":
			return nil, fault.New(fault.Usage, "the step %s has a check, and no command", s.Name).
				WithHint("git config land.step.%s.run COMMAND   (or take %s away)", s.Name, s.Check.Key)
		case len(s.Run.Text) > maxCommand || len(s.Check.Text) > maxCommand:
			return nil, fault.New(fault.Usage, "a command of the step %s has more than %d bytes, which no system starts", s.Name, maxCommand).
				WithHint("have a file do that, and the step call it")
		case slices.ContainsFunc(steps, func(o Step) bool { return o.Name == s.Name }):
			return nil, fault.New(fault.Usage, "the step %s is given twice: a step that the policy names is not replaced", s.Name).
				WithHint("give the further one a name of its own")
		}
		steps = append(steps, Step{Name: s.Name, Run: s.Run.Text, Check: s.Check.Text})
	}
	if size := len(Names(steps)); size > event.MaxText {
		return nil, fault.New(fault.Usage, "the names of %d steps take %d bytes, and an event has room for %d", len(steps), size, event.MaxText)
	}
	return steps, nil
}

// maxCommand is how long a command may be: Linux takes no argument of 128 KiB or more.
const maxCommand = 128<<10 - 1

// Parse reads steps as they are typed, NAME=COMMAND, and their checks likewise. The error
// is of class Usage.
func Parse(runs, checks []string) ([]policy.Step, error) {
	var steps []policy.Step
	for _, text := range runs {
		name, command, err := parse("--step", text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(steps, func(s policy.Step) bool { return s.Name == name }) {
			return nil, fault.New(fault.Usage, "--step gives %s twice", name)
		}
		steps = append(steps, policy.Step{Name: name, Run: policy.Command{Text: command}})
	}
	for _, text := range checks {
		name, command, err := parse("--step-check", text)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(steps, func(s policy.Step) bool { return s.Name == name })
		switch {
		case i < 0:
			return nil, fault.New(fault.Usage, "--step-check is of the step %s, which no --step gives", name)
		case steps[i].Check.Text != "":
			return nil, fault.New(fault.Usage, "--step-check gives %s twice", name)
		}
		steps[i].Check.Text = command
	}
	return steps, nil
}

func parse(option, text string) (name, command string, err error) {
	name, command, ok := strings.Cut(text, "=")
	switch {
	case !ok || strings.TrimSpace(command) == "":
		err = fmt.Errorf("%q is no NAME=COMMAND", text)
	default:
		err = event.ValidStepName(name)
	}
	if err != nil {
		return "", "", fault.New(fault.Usage, "%s: %w", option, err).WithHint("%s 'upload=./upload.sh'", option)
	}
	return name, command, nil
}
