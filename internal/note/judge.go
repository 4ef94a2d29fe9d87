package note

import (
	"slices"

	"gitland/internal/object"
)

// A Want is a check, as one command, that has to have passed. Without a command it is
// one whose verdict another system records.
type Want struct{ Check, Command string }

// A Judgement says whether a tree may land, and on what grounds.
type Judgement struct {
	Pass    bool
	Passing []Verification // the verdicts that count, in the order of the note
	Failing []Verification
	// Earlier are the tree's other verdicts: newer ones of the same check and command
	// have taken their place, or another command of the check is wanted.
	Earlier []Verification
	// Missing names each check that has no passing verdict, "any" where there
	// is none to name. It is empty if and only if Pass.
	Missing []string
}

// Any stands in Judgement.Missing where no check is wanted and none was run.
const Any = "any"

// Judge says what verifications, in the order of their notes, say of a tree.
// The last verdict of each check and command counts, last by that order and
// never by clocks. Without wants, the tree passes with at least one verdict
// and none that fails. With some, each of those pairs must have passed; what other
// commands of the same checks found is superseded, and a failure of another
// check still refuses.
func Judge(lines []Verification, tree object.OID, wants ...Want) Judgement {
	superseded := func(v Verification) bool {
		return !slices.Contains(wants, Want{v.Check, v.Command}) &&
			slices.ContainsFunc(wants, func(w Want) bool { return w.Check == v.Check })
	}
	last := make(map[Want]int)
	for i, v := range lines {
		if v.Tree == tree && !superseded(v) {
			last[Want{v.Check, v.Command}] = i
		}
	}
	var j Judgement
	for i, v := range lines {
		if at, ok := last[Want{v.Check, v.Command}]; !ok || at != i {
			if v.Tree == tree {
				j.Earlier = append(j.Earlier, v)
			}
			continue
		}
		if v.Verdict == Pass {
			j.Passing = append(j.Passing, v)
			continue
		}
		j.Failing = append(j.Failing, v)
		if !slices.Contains(j.Missing, v.Check) {
			j.Missing = append(j.Missing, v.Check)
		}
	}
	if len(wants) == 0 && len(last) == 0 {
		j.Missing = []string{Any}
	}
	for _, w := range wants {
		if _, ran := last[w]; !ran {
			j.Missing = append(j.Missing, w.Check)
		}
	}
	j.Pass = len(j.Missing) == 0
	return j
}

// Flaky are the checks that passed after the same command had failed on the same tree,
// each once.
func (j Judgement) Flaky() []string {
	var names []string
	for _, v := range j.Passing {
		failed := func(e Verification) bool {
			return e.Check == v.Check && e.Command == v.Command && e.Verdict != Pass
		}
		if slices.ContainsFunc(j.Earlier, failed) && !slices.Contains(names, v.Check) {
			names = append(names, v.Check)
		}
	}
	return names
}

// Passed reports whether the pair is among those that passed.
func (j Judgement) Passed(w Want) bool {
	return slices.ContainsFunc(j.Passing, func(v Verification) bool { return w == Want{v.Check, v.Command} })
}
