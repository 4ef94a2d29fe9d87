package ledger

import (
	"fmt"
	"strings"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
)

// spaces are the refs of the authority that are ours.
type spaces struct {
	leases        string     // + encoded lease name
	records       string     // + encoded lease name
	verifications object.Ref // one for all
	probes        []string   // one ref below each is written once to try the remote
}

// configuredSpaces reads lease.namespace and lease.notesNamespace: some hosts
// take only heads and tags, and there the chain lives below refs/heads/_lease.
func configuredSpaces(c git.Config) (spaces, error) {
	read := func(key, fallback string) (string, error) {
		v := c.Get(key)
		if v == "" {
			v = fallback
		}
		ref, err := object.ParseRef(strings.TrimSuffix(v, "/"))
		if err != nil || strings.Count(string(ref), "/") < 1 {
			return "", fault.New(fault.Usage, "config %s: %q is not a ref namespace such as %s", key, v, fallback)
		}
		return string(ref) + "/", nil
	}
	leases, err := read("lease.namespace", "refs/lease")
	if err != nil {
		return spaces{}, err
	}
	notes, err := read("lease.notesNamespace", "refs/notes")
	if err != nil {
		return spaces{}, err
	}
	return spaces{
		leases:        leases,
		records:       notes + "landing/",
		verifications: object.Ref(notes + "verification"),
		probes:        []string{leases, notes + "landing/", notes},
	}, nil
}

// probePrefix begins the last component of a probe's refs. No encoded lease name
// begins with it.
const probePrefix = "%probe-"

// A Role is what a ref is to the tools.
type Role int

// The roles of refs.
const (
	Foreign Role = iota // none of ours
	Chain               // of a lease
	Notes               // records or verifications
	Probe               // written once to try the authority
	Stray               // in the namespace of leases or of their records, and no lease's
)

// RoleOf says what ref is, and of which lease it is the chain or has the records.
func (l *Ledger) RoleOf(ref object.Ref) (role Role, lease string) {
	space := git.Namespace(ref)
	last := strings.TrimPrefix(string(ref), space)
	switch {
	case strings.HasPrefix(last, probePrefix) && (space == l.spaces.leases || space == l.spaces.records || space == git.Namespace(l.spaces.verifications)):
		return Probe, ""
	case ref == l.spaces.verifications:
		return Notes, ""
	case strings.HasPrefix(string(ref), l.spaces.records):
		name, err := event.DecodeName(strings.TrimPrefix(string(ref), l.spaces.records))
		if err != nil {
			return Stray, ""
		}
		return Notes, name
	case !strings.HasPrefix(string(ref), l.spaces.leases):
		return Foreign, ""
	}
	name, err := event.DecodeName(strings.TrimPrefix(string(ref), l.spaces.leases))
	if err != nil {
		return Stray, ""
	}
	return Chain, name
}

// Leases is the namespace of the chains, which ends in a slash.
func (l *Ledger) Leases() string { return l.spaces.leases }

// LeaseRef is the ref of the chain of a lease at the authority.
func (l *Ledger) LeaseRef(name string) (object.Ref, error) {
	encoded, err := event.EncodeName(name)
	if err != nil {
		return "", fault.New(fault.Usage, "%w", err).WithHint(
			"a name is one line without a space at either end, of 200 bytes at most; what is not of a-z 0-9 . _ - counts for three")
	}
	return object.ParseRef(l.spaces.leases + encoded)
}

// RecordsRef is the notes ref of the landing records of a lease at the authority.
func (l *Ledger) RecordsRef(name string) (object.Ref, error) {
	encoded, err := event.EncodeName(name)
	if err != nil {
		return "", fault.New(fault.Usage, "%w", err)
	}
	return object.ParseRef(l.spaces.records + encoded)
}

// VerificationsRef is the notes ref of all verifications at the authority.
func (l *Ledger) VerificationsRef() object.Ref { return l.spaces.verifications }

// probeRef is the n-th ref that the probe id writes into a namespace.
func probeRef(space, id string, n int) (object.Ref, error) {
	return object.ParseRef(fmt.Sprintf("%s%s%s-%d", space, probePrefix, strings.ToLower(id), n))
}
