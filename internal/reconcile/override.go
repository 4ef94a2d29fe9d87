package reconcile

import (
	"gitland/internal/event"
	"gitland/internal/lease"
	"gitland/internal/object"
)

// An override says on the record that the branch moved past the lease, from one
// commit to another: so what it brought has no landing, and what it took away is
// not missed. It is told as a notice. One that was announced before the push counts
// where the branch shows it.
type override struct {
	event    *event.Event
	old, new object.OID
}

// overrides yields those of the branch, oldest first.
func (s *state) overrides(yield func(override) bool) {
	for i := range s.events {
		for _, u := range s.events[i].By.Updates {
			if u.Ref == s.view.Branch && !s.unseen[i] && !yield(override{&s.events[i], u.Old, u.New}) {
				return
			}
		}
	}
}

// readAnnounced finds the announced overrides that the branch does not show.
func (s *state) readAnnounced() error {
	s.unseen = map[int]bool{}
	at := s.view.Base // after event i, as far as is known
	for i := len(s.events) - 1; i >= 0; i-- {
		e := s.events[i]
		if was, ok := lease.Expected(e, s.view.Branch); ok {
			at = was
		}
		for _, u := range e.By.Updates {
			if !e.By.Announced || u.Ref != s.view.Branch {
				continue
			}
			shown, err := lease.Shows(s.ctx, s.l.Repo, u, at)
			if err != nil {
				return err
			}
			s.unseen[i] = !shown
		}
	}
	return nil
}

// excuse marks what overrides account for.
func (s *state) excuse() {
	for o := range s.overrides {
		s.cover(o.old, o.new)
		s.history.between(o.new, o.old, func(n *node) { n.removed = true })
	}
}

// removed reports whether an override took a commit off the branch.
func (s *state) removed(oid object.OID) bool {
	n := s.history.find(oid)
	return n != nil && !n.branch && n.removed
}

// leftStart reports whether an override moved the branch to where the commit at
// which it came under the lease is not part of it.
func (s *state) leftStart(start object.OID) (bool, error) {
	for o := range s.overrides {
		if o.new == "" {
			return true, nil
		}
		here, err := s.has(o.new)
		if err == nil && here {
			here, err = s.l.Repo.IsAncestor(s.ctx, start, o.new)
		}
		if err != nil || !here {
			return err == nil, err
		}
	}
	return false, nil
}
