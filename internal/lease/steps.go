package lease

import (
	"fmt"
	"strings"

	"gitland/internal/event"
	"gitland/internal/ledger"
)

// Coming says which steps are to come under a hold, and how the first of them went that
// did not succeed; "" where there are none.
func Coming(h event.Hold) string {
	pending := h.Pending()
	if len(pending) == 0 {
		return ""
	}
	then := "; then: " + strings.Join(pending[1:], ", ")
	if len(pending) == 1 {
		then = ""
	}
	switch h.Stuck {
	case event.Failed:
		return fmt.Sprintf("step %s failed%s", pending[0], then)
	case event.Unknown:
		return fmt.Sprintf("step %s may be done or not%s", pending[0], then)
	}
	return "steps to come: " + strings.Join(pending, ", ")
}

// StepsCommands is the hint of how the steps under a hold come to their end, by whoever
// has it.
func StepsCommands(l *ledger.Ledger, h event.Hold) string {
	op := h.Operation.String()
	return fmt.Sprintf("%s   (or, to give them up: %s)", l.Command("git", "land", "resume", op),
		l.Command("git", "land", "abort", op, "--reason", "WHY"))
}
