package cli

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
)

type signatureJSON struct {
	Verdict git.Verdict `json:"verdict"`
	Signer  string      `json:"signer,omitempty"`
	Key     string      `json:"key,omitempty"`
	// Differs is that the signer is known here by another address than the actor's.
	Differs bool `json:"signer_differs,omitempty"`
}

func newSignatureJSON(e event.Event, s *git.Signature) *signatureJSON {
	if s == nil {
		return nil
	}
	return &signatureJSON{s.Verdict, s.Signer, s.Key, signerDiffers(e, s)}
}

// signerDiffers reports whether the signer of an event goes by another address than its
// actor. With ssh it is the first that gpg.ssh.allowedSignersFile has for the key, or a
// pattern for addresses (ssh-keygen(1)); with others it is "Name <email>".
func signerDiffers(e event.Event, s *git.Signature) bool {
	if s.Signer == "" || s.Verdict == git.Bad {
		return false
	}
	name, email, _ := strings.Cut(strings.ToLower(strings.TrimSuffix(e.Actor, ">")), " <")
	signer := strings.ToLower(s.Signer)
	if _, address, full := strings.Cut(signer, "<"); full {
		return strings.TrimSuffix(address, ">") != email
	}
	matched, err := path.Match(signer, email)
	return signer != name && (err != nil || !matched)
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

func (c *call) printSignature(e event.Event, s *git.Signature) {
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
	if signerDiffers(e, s) {
		c.out.printf("%s", paint(yellow, ", of an event by "+e.Actor))
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

	unchecked int
	why, mend string // of the first of those
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
		switch found[i].Verdict {
		case git.Bad:
			s.bad = append(s.bad, e.OID)
		case git.Unchecked:
			if s.unchecked++; s.unchecked == 1 {
				s.why, s.mend = whyUnchecked(s.repo.Config, found[i].Made)
			}
		}
		s.show(e, &found[i])
	}
	s.wait = nil
}

// whyUnchecked says what git lacks to check signatures of a kind, and the command that
// mends it.
func whyUnchecked(c git.Config, made git.Maker) (why, mend string) {
	key, program := "gpg.program", "gpg"
	switch made {
	case git.SSH:
		if key, program = "gpg.ssh.program", "ssh-keygen"; c.Get("gpg.ssh.allowedSignersFile") == "" {
			return "gpg.ssh.allowedSignersFile is not set, which says whose keys are whose",
				"git config gpg.ssh.allowedSignersFile FILE   (its lines: EMAIL KEY; ssh-keygen(1), ALLOWED SIGNERS)"
		}
	case git.X509:
		key, program = "gpg.x509.program", "gpgsm"
	}
	used := cmp.Or(c.Get(key), program)
	return fmt.Sprintf("git came to no result with %s (%s)", used, key), fault.Command("git", "config", key, program) + "   (where that is installed)"
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
