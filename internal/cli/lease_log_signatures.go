package cli

import (
	"context"
	"fmt"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
)

type signatureJSON struct {
	Verdict git.Verdict `json:"verdict"`
	Signer  string      `json:"signer,omitempty"`
	Key     string      `json:"key,omitempty"`
}

func newSignatureJSON(s *git.Signature) *signatureJSON {
	if s == nil {
		return nil
	}
	return &signatureJSON{s.Verdict, s.Signer, s.Key}
}

// verdictWords say what a signature is worth.
var verdictWords = map[git.Verdict]string{
	git.Good:      "good",
	git.Untrusted: "good, by a key that is not known here to be anybody's",
	git.Expired:   "good, but it or its key has expired",
	git.Revoked:   "good, but its key was revoked",
	git.Bad:       "BAD: this is not what was signed",
	git.NoKey:     "not checked: its key is not here",
	git.Unchecked: "not checked: git could not",
	git.Unsigned:  "unsigned",
}

func (c *call) printSignature(s *git.Signature) {
	if s == nil {
		return
	}
	word := paint(yellow, verdictWords[s.Verdict])
	switch s.Verdict {
	case git.Good:
		word.style = green
	case git.Bad, git.Revoked:
		word.style = red
	case git.Unsigned:
		word.style = faint
	}
	c.out.printf("       signature %s", word)
	if s.Signer != "" {
		c.out.printf(", by %s", s.Signer)
	}
	if s.Key != "" {
		c.out.printf(" (%s)", s.Key)
	}
	c.out.printf("\n")
}

// signatures checks those of events, many in one process, before it has them shown.
type signatures struct {
	repo   *git.Repo
	show   func(event.Event, *git.Signature)
	wait   []event.Event
	bad    []object.OID
	failed error
}

// checkedAtOnce is how many events wait to be checked together.
const checkedAtOnce = 32

func (s *signatures) add(ctx context.Context, e event.Event) {
	if s.wait = append(s.wait, e); len(s.wait) == checkedAtOnce {
		s.flush(ctx)
	}
}

func (s *signatures) flush(ctx context.Context) {
	if s.failed != nil {
		return
	}
	var ids []object.OID
	for _, e := range s.wait {
		ids = append(ids, e.OID)
	}
	found, err := s.repo.Signatures(ctx, ids)
	if s.failed = err; err != nil {
		return
	}
	for i, e := range s.wait {
		if found[i].Verdict == git.Bad {
			s.bad = append(s.bad, e.OID)
		}
		s.show(e, &found[i])
	}
	s.wait = nil
}

// end shows the rest. A bad signature is a fault of class Ambiguous: somebody has written
// what another has signed in other words, so that no reader knows whose the event is.
func (s *signatures) end(ctx context.Context) error {
	s.flush(ctx)
	if s.failed != nil || len(s.bad) == 0 {
		return s.failed
	}
	what := fmt.Sprintf("the signature of the event %s is bad", s.bad[0])
	if n := len(s.bad); n > 1 {
		what = fmt.Sprintf("the signatures of %d events are bad, the newest that of %s", n, s.bad[0])
	}
	return fault.New(fault.Ambiguous, "%s", what).
		WithHint("%s", fault.Command("git", "log", "--show-signature", "--no-walk", string(s.bad[0]))).
		WithFacts(map[string]any{"bad": s.bad})
}
