package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"gitland/internal/object"
)

// IsSignature reports whether a header of a commit is a signature: of the commit as it is
// named by SHA-1, or by SHA-256.
func IsSignature(h object.Header) bool { return h.Key == "gpgsig" || h.Key == "gpgsig-sha256" }

// ErrNotSame says that git would sign another commit than the one that is meant: it
// writes only the headers that it knows, and identities in its own spelling.
var ErrNotSame = errors.New("git commit-tree cannot make this very commit")

// WriteSigned writes a commit with the user's signature, by user.signingKey, gpg.format
// and whatever else git knows of signing, and returns its id. All else in it stays as it
// is, byte for byte, or the error is ErrNotSame. Its tree and parents have to be written.
func (r *Repo) WriteSigned(ctx context.Context, c object.CommitData) (object.OID, error) {
	cmd := command{args: []string{"commit-tree", "-S"}, stdin: []byte(c.Message)}
	for _, p := range c.Parents {
		cmd.args = append(cmd.args, "-p", string(p))
	}
	cmd.args = append(cmd.args, "-F", "-", string(c.Tree))
	encoding := "UTF-8" // of which git writes no header
	if len(c.Extra) > 0 && c.Extra[0].Key == "encoding" {
		encoding = c.Extra[0].Value
	}
	cmd.config = []string{"i18n.commitEncoding=" + encoding}
	cmd.env = slices.Concat(identEnv("AUTHOR", c.Author), identEnv("COMMITTER", c.Committer))
	out, err := r.run(ctx, cmd)
	if err != nil {
		return "", err
	}
	oid, err := object.ParseOID(strings.TrimSpace(out))
	if err != nil {
		return "", err
	}
	made, err := r.Commit(ctx, oid)
	if err != nil {
		return "", err
	}
	signed := slices.ContainsFunc(made.Extra, IsSignature)
	made.Extra = slices.DeleteFunc(made.Extra, IsSignature)
	if !signed || !bytes.Equal(made.Encode(), c.Encode()) {
		return "", ErrNotSame
	}
	return oid, nil
}

// identEnv has git write an identity as it stands in a commit.
func identEnv(role, ident string) []string {
	name, rest, _ := strings.Cut(ident, " <")
	email, date, _ := strings.Cut(rest, "> ")
	return []string{"GIT_" + role + "_NAME=" + name, "GIT_" + role + "_EMAIL=" + email, "GIT_" + role + "_DATE=@" + date}
}

// A Verdict says what a signature is worth, as git tells here.
type Verdict string

// The verdicts. Only Bad says that something is wrong with what was signed; all but it,
// Good and Unsigned are of what this machine knows of the key.
const (
	Good      Verdict = "good"
	Untrusted Verdict = "untrusted" // it fits, and by a key that is nobody's known here
	Expired   Verdict = "expired"   // it fits, and it or its key has expired
	Revoked   Verdict = "revoked"   // it fits, and its key was revoked
	Bad       Verdict = "bad"       // it does not fit what was signed
	NoKey     Verdict = "no-key"    // the key is not here
	Unchecked Verdict = "unchecked" // it could not be checked: gpg.ssh.allowedSignersFile is not set, say
	Unsigned  Verdict = "unsigned"
)

// A Signature is what git says of that of a commit.
type Signature struct {
	Verdict Verdict
	Signer  string // whose key it is, as this machine knows; may be empty
	Key     string // its fingerprint or id; may be empty
	Made    Maker  // by what it was made; of one that is Unchecked alone
}

// A Maker is a kind of signatures.
type Maker string

// The makers.
const (
	OpenPGP Maker = "openpgp"
	X509    Maker = "x509"
	SSH     Maker = "ssh"
)

// makers are known by how their signatures begin (gpg-interface.c of git).
var makers = []struct {
	begin string
	maker Maker
}{{"-----BEGIN SSH SIGNATURE-----", SSH}, {"-----BEGIN SIGNED MESSAGE-----", X509}, {"-----BEGIN PGP", OpenPGP}}

// verdicts are those of %G? in git-log(1).
var verdicts = map[string]Verdict{"G": Good, "U": Untrusted, "X": Expired, "Y": Expired, "R": Revoked, "B": Bad, "E": NoKey, "N": Unsigned}

// revocations is the configuration that names revoked ssh keys.
const revocations = "gpg.ssh.revocationFile"

// Signatures checks the signatures of commits, in their order.
func (r *Repo) Signatures(ctx context.Context, commits []object.OID) ([]Signature, error) {
	if len(commits) == 0 {
		return nil, nil
	}
	list, err := r.askSignatures(ctx, commits)
	if err != nil {
		return nil, err
	}
	if r.Config.Get(revocations) != "" {
		err = r.findRevoked(ctx, commits, list)
	}
	for i := range list {
		if err == nil && (list[i].Verdict == Unsigned || list[i].Verdict == Unchecked) {
			err = r.unchecked(ctx, commits[i], &list[i])
		}
	}
	return list, err
}

// findRevoked tells revoked ssh keys from bad signatures, for which git has one letter:
// what fits where nobody's key was revoked was signed by one that was.
func (r *Repo) findRevoked(ctx context.Context, commits []object.OID, list []Signature) error {
	var bad []object.OID
	for i, s := range list {
		if s.Verdict == Bad {
			bad = append(bad, commits[i])
		}
	}
	if len(bad) == 0 {
		return nil
	}
	again, err := r.askSignatures(ctx, bad, revocations+"="+os.DevNull)
	if err != nil {
		return err
	}
	for i, oid := range commits {
		if at := slices.Index(bad, oid); at >= 0 && (again[at].Verdict == Good || again[at].Verdict == Untrusted) {
			list[i] = again[at]
			list[i].Verdict = Revoked
		}
	}
	return nil
}

// unchecked is for a commit of which git says that there is no signature, which it also
// does where it cannot check one, or nothing.
func (r *Repo) unchecked(ctx context.Context, commit object.OID, s *Signature) error {
	c, err := r.Commit(ctx, commit)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(c.Extra, IsSignature)
	if i < 0 {
		return nil
	}
	s.Verdict = Unchecked
	for _, m := range makers {
		if strings.HasPrefix(c.Extra[i].Value, m.begin) {
			s.Made = m.maker
		}
	}
	return nil
}

func (r *Repo) askSignatures(ctx context.Context, commits []object.OID, config ...string) ([]Signature, error) {
	var in bytes.Buffer
	for _, oid := range commits {
		fmt.Fprintln(&in, oid)
	}
	// Not rev-list: git 2.39's does not read the configuration of signatures. %GG is what
	// the checking program printed.
	found := map[object.OID]Signature{}
	err := r.stream(ctx, command{stdin: in.Bytes(), config: append(config, "log.showSignature=false"), args: []string{
		"log", "-z", "--no-walk=unsorted", "--no-color", "--no-patch", "--format=%H%x01%G?%x01%GS%x01%GK%x01%GG", "--stdin"}},
		func(out *bufio.Reader) error {
			for {
				entry, err := out.ReadString(0)
				if f := strings.SplitN(strings.TrimSuffix(entry, "\x00"), "\x01", 5); len(f) == 5 {
					s := Signature{Verdict: verdicts[f[1]], Signer: f[2], Key: f[3]}
					// With ssh, "bad" is also what git says where there was no program to ask.
					if s.Verdict == "" || s.Verdict == Bad && !r.saysBad(ctx, object.OID(f[0]), f[4]) {
						s = Signature{Verdict: Unchecked}
					}
					found[object.OID(f[0])] = s
				}
				if err == io.EOF {
					return nil
				}
				if err != nil {
					return err
				}
			}
		})
	if brokenPipe(err) { // of a program that ended before it read what was signed
		return r.askApart(ctx, commits, config...)
	}
	if err != nil {
		return nil, err
	}
	list := make([]Signature, len(commits))
	for i, oid := range commits {
		s, ok := found[oid]
		if !ok {
			return nil, fmt.Errorf("check the signature of %s: git says nothing of it", oid.Short())
		}
		list[i] = s
	}
	return list, nil
}

// saysBad reports whether what a program said of a signature is that it is bad. To git
// (up to 2.56) everything that an ssh program says is, but "Good".
func (r *Repo) saysBad(ctx context.Context, commit object.OID, said string) bool {
	var s Signature
	if err := r.unchecked(ctx, commit, &s); err != nil || s.Made != SSH {
		return strings.TrimSpace(said) != ""
	}
	return strings.Contains(said, "Could not verify signature") // ssh-keygen(1), whatever the cause
}

// askApart asks of each commit by itself, so that one whose check ends git leaves the
// others theirs.
func (r *Repo) askApart(ctx context.Context, commits []object.OID, config ...string) ([]Signature, error) {
	if len(commits) == 1 {
		return []Signature{{Verdict: Unchecked}}, nil
	}
	var list []Signature
	for _, oid := range commits {
		one, err := r.askSignatures(ctx, []object.OID{oid}, config...)
		if err != nil {
			return nil, err
		}
		list = append(list, one...)
	}
	return list, nil
}

// brokenPipe reports whether git was ended by a program that did not read.
func brokenPipe(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && (status.Signaled() && status.Signal() == syscall.SIGPIPE || status.ExitStatus() == 128+int(syscall.SIGPIPE))
}
