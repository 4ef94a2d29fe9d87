package reconcile

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/oklog/ulid/v2"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/session"
)

// A state is one reading of all that is compared.
type state struct {
	ctx  context.Context
	l    *ledger.Ledger
	r    Request
	view ledger.View

	events   []event.Event // of the whole chain, oldest first; nil where it is not sound
	chainErr error         // why it is not
	adopted  *event.Event  // by which the branch came under the lease; nil when it has not

	notes      []ledger.RecordNote
	notesErr   error // why the records could not be listed
	history    *history
	shallow    bool
	cut        bool         // it is, and something that is compared is not here
	tipGone    bool         // the commit at which the branch came under the lease is not on it
	unseen     map[int]bool // of the events, overrides that were announced and did not come
	operations []operation
	lostChecks []object.OID  // tips of verifications that this clone saw, and others took the place of
	keepers    []event.Event // tips of the leases that list the branch

	motions    []chain.Motion
	landings   []*landing // with a part in the branch, in the order of their events
	byID       map[ulid.ULID]*landing
	settled    map[pair]bool       // what repairs name
	absent     map[object.OID]bool // said to have landed, and not in this clone
	unreadable map[object.OID]bool // commits of whose records nothing can be said
	report     Report
}

// A landing is what chain and notes say of one landing.
type landing struct {
	id      ulid.ULID
	events  []*event.Event // that say it landed: land, or a repair in its place
	intent  *event.Event   // by which it was announced
	open    bool           // announced by who still holds the lease
	broken  bool           // announced, and neither landed nor withdrawn when the hold ended
	records []placed
	ends    []placed // records once more, that say how the steps ended
}

// A placed record is a line, and the object whose note it stands in.
type placed struct {
	on    object.OID
	value *note.Record
}

func read(ctx context.Context, l *ledger.Ledger, r Request) (*state, error) {
	v, err := l.Fetch(ctx, r.Want)
	if err != nil {
		return nil, err
	}
	if err := l.NoStory(ctx, v, "git", "land", "reconcile"); err != nil {
		return nil, err
	}
	return readView(ctx, l, r, v)
}

// readView reads what the view points to.
func readView(ctx context.Context, l *ledger.Ledger, r Request, v ledger.View) (*state, error) {
	s := &state{ctx: ctx, l: l, r: r, view: v, byID: map[ulid.ULID]*landing{}, settled: map[pair]bool{}}
	if err := s.readOperations(); err != nil {
		return nil, err
	}
	var err error
	if s.lostChecks, err = l.LostVerifications(ctx, v); err != nil {
		return nil, err
	}
	var chainErr, notesErr error
	var wg sync.WaitGroup // neither reading needs the other
	wg.Go(func() { notesErr = s.readRecords() })
	chainErr = s.readChain()
	wg.Wait()
	if err := cmp.Or(chainErr, notesErr); err != nil {
		return nil, err
	}
	if err := s.readKeepers(); err != nil {
		return nil, err
	}
	if s.adopted == nil {
		return s, nil // nothing of this branch is anybody's business
	}
	s.join()
	if err := s.readAnnounced(); err != nil {
		return nil, err
	}
	return s, s.readHistory()
}

func (s *state) progress(what string) func(done, all int) {
	return func(done, all int) {
		if s.r.Progress != nil {
			s.r.Progress(what, done, all)
		}
	}
}

func (s *state) readChain() error {
	v := s.view
	if v.Problem != nil {
		if v.BadTip != "" && !v.Deleted && !v.Newer {
			_, s.chainErr = s.l.WholeChain(s.ctx, v.Name, v.BadTip, s.progress("events"))
		}
		return s.ctx.Err()
	}
	if v.Tip == nil {
		return nil
	}
	events, err := s.l.WholeChain(s.ctx, v.Name, v.Tip.OID, s.progress("events"))
	var broken *ledger.ChainError
	if errors.As(err, &broken) {
		s.chainErr = err
		return nil
	}
	if err != nil {
		return err
	}
	s.events = events
	for i := range events {
		if a := events[i].By.Adopt; a != nil && a.Branch == v.Branch && s.adopted == nil {
			s.adopted = &events[i]
		}
		if f := events[i].By.Finding; f != nil {
			s.settled[pair{Code(f.Code), f.Object}] = true
		}
	}
	return nil
}

func (s *state) readRecords() error {
	s.notes, s.notesErr = s.l.WholeRecords(s.ctx, s.view.Records, nil, s.progress("records"))
	if s.notesErr != nil {
		s.notes = nil
	}
	return s.ctx.Err()
}

// join brings together what is said of each landing. Those of other branches
// under the same lease are left out, but for one of which only a part says so.
func (s *state) join() {
	get := func(id ulid.ULID) *landing {
		if s.byID[id] == nil {
			s.byID[id] = &landing{id: id}
			s.landings = append(s.landings, s.byID[id])
		}
		return s.byID[id]
	}
	for i := range s.events {
		e := &s.events[i]
		if e.By.Land != nil {
			n := get(e.By.Land.ID)
			if e.Kind == event.Intent {
				n.intent, n.open, n.broken = e, true, false
			} else {
				n.events, n.open, n.broken = append(n.events, e), false, false
			}
		}
		s.endIntent(i)
	}
	s.readMotions()
	for _, n := range s.notes {
		for i := range n.Lines {
			if line := &n.Lines[i]; line.Err == nil && !line.Newer {
				landing := get(line.Value.ID)
				landing.records = append(landing.records, placed{n.On, &line.Value})
			}
		}
	}
	for _, n := range s.landings {
		n.split()
	}
	s.landings = slices.DeleteFunc(s.landings, func(n *landing) bool { return !n.of(s.view.Branch) })
}

// endIntent closes the landing whose announcement event i has ended without it:
// the holder withdrew it, or it was taken off.
func (s *state) endIntent(i int) {
	if i == 0 {
		return
	}
	before, e := s.events[i-1].State.Hold, s.events[i]
	if before == nil || before.Intent.IsZero() || e.State.Hold != nil && e.State.Hold.Intent == before.Intent {
		return
	}
	n := s.byID[before.Intent]
	if n == nil || len(n.events) > 0 {
		return
	}
	n.open = false
	n.broken = e.Kind == event.Break || e.Kind == event.Recover
}

// of reports whether anything that is said of the landing is of the branch.
func (n *landing) of(branch object.Ref) bool {
	for _, e := range n.events {
		if e.By.Land.Branch == branch {
			return true
		}
	}
	return n.intent != nil && n.intent.By.Land.Branch == branch ||
		slices.ContainsFunc(n.records, func(p placed) bool { return p.value.Branch == branch })
}

// claimed yields the commits that are said to have landed, the surest first.
func (n *landing) claimed(yield func(object.OID)) {
	for _, e := range n.events {
		yield(e.By.Land.Commit)
	}
	if n.intent != nil {
		yield(n.intent.By.Land.Commit)
	}
	for _, p := range n.records {
		yield(p.value.Commit)
	}
}

// readHistory reads the commits since the branch came under the lease, with
// those that are said to have landed and are not on it.
func (s *state) readHistory() error {
	s.shallow = s.l.Repo.IsShallow()
	var excluded []object.OID
	start := s.adopted.By.Adopt.Tip
	for _, oid := range []object.OID{start, s.r.Since} {
		if oid != "" {
			excluded = append(excluded, oid)
		}
	}
	var err error
	if s.history, err = readHistory(s.ctx, s.l.Repo, s.view.Base, start, nil, excluded, s.progress("commits")); err != nil {
		return err
	}
	if elsewhere := s.outside(); len(elsewhere) > 0 { // mostly there are none
		if s.history, err = readHistory(s.ctx, s.l.Repo, s.view.Base, start, elsewhere, excluded, s.progress("commits")); err != nil {
			return err
		}
	}
	outside := s.outside()
	s.absent = map[object.OID]bool{}
	err = s.l.Repo.Contents(s.ctx, outside, func(i int, _ object.Object, err error) error {
		s.absent[outside[i]] = err != nil
		return nil
	})
	s.cut = s.shallow && slices.Contains(slices.Collect(maps.Values(s.absent)), true)
	if err != nil || start == "" || s.view.Base == start {
		return err
	}
	here := s.history.touched
	if s.r.Since != "" { // which may have all that stands on it
		if here, err = s.has(start); err == nil && here && s.view.Base != "" {
			here, err = s.l.Repo.IsAncestor(s.ctx, start, s.view.Base)
		}
	}
	if s.tipGone = err == nil && !here && !s.shallow; s.tipGone {
		var left bool
		left, err = s.leftStart(start)
		s.tipGone = !left
	}
	s.cut = s.cut || s.shallow && !here
	return err
}

// outside are the commits that are said to have landed, or to have been taken off
// the branch, and are not in the graph.
func (s *state) outside() (list []object.OID) {
	seen := map[object.OID]bool{"": true}
	add := func(oid object.OID) {
		if s.history.find(oid) == nil && !seen[oid] {
			seen[oid] = true
			list = append(list, oid)
		}
	}
	for _, n := range s.landings {
		n.claimed(add)
	}
	for o := range s.overrides {
		add(o.old)
	}
	return list
}

// has reports whether this clone has an object.
func (s *state) has(oid object.OID) (bool, error) {
	_, err := s.l.Repo.Lookup(s.ctx, string(oid))
	if errors.Is(err, git.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// readOperations reads which operations of this clone, at this authority and
// under this lease, have not ended. What a journal says beside that is not
// looked at.
func (s *state) readOperations() error {
	s.operations = nil
	ids, err := s.l.Dir.Journal().List()
	if err != nil {
		return err
	}
	for _, id := range ids {
		var j struct {
			Remote, Address, Lease string
			Landing, Motion        ulid.ULID
		}
		err := s.l.Dir.Journal().Load(id, &j)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has just ended
			continue
		case err == nil && (j.Address != s.l.Address() || j.Lease != s.view.Name): // remotes are renamed
			continue
		}
		// One that cannot be read is of an operation that has not ended, too.
		alive, err := s.l.Dir.Alive(id)
		if err != nil && !errors.Is(err, session.ErrNoWitness) {
			return err
		}
		s.operations = append(s.operations, operation{id, alive, []ulid.ULID{id, j.Landing, j.Motion}})
	}
	return nil
}

// readKeepers reads which leases list the branch.
func (s *state) readKeepers() (err error) {
	if s.adopted != nil {
		s.keepers, err = s.l.Keepers(s.ctx, s.view.Branch)
	}
	return err
}

// A pair is what a repair names.
type pair struct {
	code   Code
	object object.OID
}
