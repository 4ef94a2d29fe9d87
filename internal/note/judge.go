package note

import (
	"slices"

	"gitland/internal/object"
)

// A Want is the one check, as the one command, that has to have passed.
type Want struct{ Check, Command string }

// A Judgement says whether a tree may land, and on what grounds.
type Judgement struct {
	Pass    bool
	Passing []Verification // the verdicts that count, in the order of the note
	Failing []Verification
	// Missing names each check that has no passing verdict, "any" where there
	// is none to name. It is empty if and only if Pass.
	Missing []string
}

// Any stands in Judgement.Missing where no check is wanted and none was run.
const Any = "any"

// Judge says what verifications, in the order of their notes, say of a tree.
// The last verdict of each check and command counts, last by that order and
// never by clocks. Without a want, the tree passes with at least one verdict
// and none that fails. With one, that pair must have passed; what other
// commands of the same check found is superseded, and a failure of another
// check still refuses.
func Judge(lines []Verification, tree object.OID, want *Want) Judgement {
	last := make(map[Want]int)
	for i, v := range lines {
		if v.Tree == tree && (want == nil || v.Check != want.Check || v.Command == want.Command) {
			last[Want{v.Check, v.Command}] = i
		}
	}
	var j Judgement
	for i, v := range lines {
		if at, ok := last[Want{v.Check, v.Command}]; !ok || at != i {
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
	if want == nil && len(last) == 0 {
		j.Missing = []string{Any}
	} else if want != nil {
		if _, ran := last[*want]; !ran {
			j.Missing = append(j.Missing, want.Check)
		}
	}
	j.Pass = len(j.Missing) == 0
	return j
}
