package step_test

import (
	"slices"
	"strings"
	"testing"

	"gitland/internal/fault"
	"gitland/internal/policy"
	"gitland/internal/step"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		runs, checks []string
		want, wrong  string
	}{
		{},
		{runs: []string{"tag=git tag v1"}, want: "tag=git tag v1"},
		{runs: []string{"a=x=1 y", "b=z"}, checks: []string{"b=c"}, want: "a=x=1 y b=z?c"},
		{runs: []string{"tag"}, wrong: `"tag" is no NAME=COMMAND`},
		{runs: []string{"tag= "}, wrong: `"tag= " is no NAME=COMMAND`},
		{runs: []string{"=x"}, wrong: "is no name of a step"},
		{runs: []string{"-a=x"}, wrong: "is no name of a step"},
		{runs: []string{"a/b=x"}, wrong: "is no name of a step"},
		{runs: []string{strings.Repeat("a", 65) + "=x"}, wrong: "is no name of a step"},
		{runs: []string{"a=x", "a=y"}, wrong: "--step gives a twice"},
		{runs: []string{"a=x"}, checks: []string{"b=x"}, wrong: "which no --step gives"},
		{runs: []string{"a=x"}, checks: []string{"a=x", "a=y"}, wrong: "--step-check gives a twice"},
	} {
		got, err := step.Parse(tt.runs, tt.checks)
		if tt.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wrong) || fault.ClassOf(err) != fault.Usage {
				t.Errorf("%q %q: %v", tt.runs, tt.checks, err)
			}
			continue
		}
		if text := spelt(got); err != nil || text != tt.want {
			t.Errorf("%q %q: %q, %v", tt.runs, tt.checks, text, err)
		}
	}
}

func spelt(steps []policy.Step) string {
	var list []string
	for _, s := range steps {
		text := s.Name + "=" + s.Run.Text
		if s.Check.Text != "" {
			text += "?" + s.Check.Text
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

func named(name, run, check string) policy.Step {
	return policy.Step{Name: name, Run: policy.Command{Text: run}, Check: policy.Command{Key: "land.step." + name + ".check", Text: check}}
}

func TestNew(t *testing.T) {
	t.Parallel()
	steps, err := step.New([]policy.Step{named("b", "run b", "check b")}, named("a", "run a", ""))
	want := []step.Step{{Name: "b", Run: "run b", Check: "check b"}, {Name: "a", Run: "run a"}}
	if err != nil || !slices.Equal(steps, want) || step.Names(steps) != "b a" {
		t.Errorf("%+v, %v", steps, err)
	}
	if _, err := step.New([]policy.Step{named("a", "x", "")}, named("a", "y", "")); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Errorf("twice: %v", err)
	}
	if _, err := step.New([]policy.Step{named("a", "", "x")}); err == nil || !strings.Contains(err.Error(), "no command") {
		t.Errorf("without a command: %v", err)
	}
	var many []policy.Step
	for c := range 20 {
		many = append(many, named(strings.Repeat(string(rune('a'+c)), 60), "x", ""))
	}
	if _, err := step.New(many); err == nil || !strings.Contains(err.Error(), "has room for 1024") {
		t.Errorf("more than an event can name: %v", err)
	}
}
