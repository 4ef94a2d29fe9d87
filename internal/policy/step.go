package policy

import (
	"slices"
	"strings"

	"gitland/internal/event"
)

// maxSteps bounds how many steps may follow a landing: their names have to fit into one
// field of an event.
const maxSteps = 64

// stepOf takes "land.step.<name>.run" and "land.step.<name>.check" apart; the variable is
// "" for another key.
func stepOf(key string) (name, variable string) {
	rest, ok := strings.CutPrefix(key, "land.step.")
	if !ok {
		return "", ""
	}
	for _, variable := range []string{"run", "check"} {
		if name, ok := strings.CutSuffix(rest, "."+variable); ok {
			return name, variable
		}
	}
	return "", ""
}

// addStep takes one setting of a step. In git's configuration the last one of a key
// counts, and an empty one takes it away.
func (p *Policy) addStep(name, variable string, c Command) (why string) {
	if err := event.ValidStepName(name); err != nil {
		return err.Error()
	}
	switch {
	case c.Text == "" && c.Shared:
		return "is empty"
	case c.Text != "" && strings.TrimSpace(c.Text) == "":
		return "is blank"
	case !c.showable():
		return hidden
	}
	if p.FindStep(name) == nil {
		if len(p.Steps) == maxSteps {
			return "is one step too many"
		}
		p.Steps = append(p.Steps, Step{Name: name})
	}
	s := p.FindStep(name)
	if variable == "run" {
		s.Run = c
	} else {
		s.Check = c
	}
	if s.Run.Text == "" && s.Check.Text == "" {
		p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return s.Name == name })
	}
	return ""
}

// withStep is p with a step of the user's own configuration behind its own; of one that
// p has, only what p leaves open is taken.
func (p Policy) withStep(own Step) Policy {
	p.Steps = slices.Clone(p.Steps) // a policy is kept for its file
	s := p.FindStep(own.Name)
	switch {
	case s == nil:
		p.Steps = append(p.Steps, own)
	case s.Check.Text == "":
		s.Check = own.Check
	}
	return p
}

// shared are the commands of a step that come from the file.
func (s Step) shared() (all []Command) {
	for _, c := range []Command{s.Run, s.Check} {
		if c.Shared && c.Text != "" {
			all = append(all, c)
		}
	}
	return all
}
