package reconcile

import (
	"cmp"
	"math"
	"slices"

	"gitland/internal/event"
	"gitland/internal/object"
)

func (s *state) notice(n Notice) { s.report.Notices = append(s.report.Notices, n) }

func noticeOf(kind string, e *event.Event, about object.OID, text string) Notice {
	return Notice{Kind: kind, Object: about, Sequence: e.Seq, Operation: e.By.Operation.String(), Actor: e.Actor, Host: e.By.Host, Time: e.Time, Text: text}
}

// sortNotices puts what is under way first, and then the newest. Those without a
// place on the chain are of landings that it does not know.
func (s *state) sortNotices() {
	place := func(n Notice) uint64 {
		switch {
		case n.Kind == "under-way":
			return math.MaxUint64
		case n.Sequence == 0:
			return event.MaxSeq + 1
		}
		return n.Sequence
	}
	slices.SortStableFunc(s.report.Notices, func(a, b Notice) int { return cmp.Compare(place(b), place(a)) })
}

// passedOver is the sequence of the last landing that --since passes over.
func (s *state) passedOver() (seq uint64) {
	if s.r.Since == "" {
		return 0
	}
	for i := range s.events {
		if land := s.events[i].By.Land; land != nil && land.Branch == s.view.Branch && s.where(land.Commit) == before {
			seq = s.events[i].Seq
		}
	}
	return seq
}

// noticeEvents lists what on the chain is no fault and should be seen. With
// --since it is what came after the last landing that is passed over.
func (s *state) noticeEvents() {
	if s.adopted == nil {
		return
	}
	passed := s.passedOver()
	for i := range s.events {
		e := &s.events[i]
		reason := e.By.Reason
		switch {
		case e.Seq <= passed:
		case e.Kind == event.Land && e.By.Land.Unverified != "" && e.By.Land.Branch == s.view.Branch:
			s.notice(noticeOf("unverified-landing", e, e.By.Land.Commit, e.By.Land.Reason))
		case e.Kind == event.Override:
			for _, u := range e.By.Updates {
				kind, how := "override", "past the lease, "
				switch {
				case s.unseen[i] && u.Ref == s.view.Branch:
					kind, how = "announced-override", "announced before a push past the lease that is not seen on the branch, "
				case e.By.Announced:
					how = "past the lease, as announced before the push, "
				}
				s.notice(noticeOf(kind, e, cmp.Or(u.New, u.Old), how+u.Ref.Branch()+": "+reason))
			}
		case e.Kind == event.Break || e.Kind == event.Recover:
			s.notice(noticeOf(string(e.Kind), e, e.OID, "off operation "+e.By.Target.String()+": "+reason))
		case e.Kind == event.Adopt && e.By.Adopt != nil && e.By.Adopt.Over != "":
			s.notice(noticeOf("adopt-over", e, e.By.Adopt.Over, reason))
		case e.Kind == event.Repair:
			s.notice(noticeOf("repair", e, e.By.Finding.Object, e.By.Finding.Code+": "+reason))
		case e.By.Step != nil && e.By.Step.Outcome == event.Declared:
			s.notice(noticeOf("declared-step", e, e.OID, "the step "+e.By.Step.Name+" is done, somebody says: "+reason))
		case e.Kind == event.Freeze:
			s.notice(noticeOf("freeze", e, e.OID, reason))
		case e.Kind == event.Thaw:
			s.notice(noticeOf("thaw", e, e.OID, reason))
		}
	}
}
