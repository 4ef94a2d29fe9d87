package doctor

import (
	"context"

	"gitland/internal/object"
)

// signing signs a commit of nothing, where commits, or events and notes, are to be
// signed: a key that has gone would keep a landing from being made.
func (d *doctor) signing(ctx context.Context) {
	var wanted string
	for _, key := range []string{"lease.sign", "commit.gpgSign"} {
		sign, err := d.Repo.Config.Bool(key, false)
		if err != nil {
			d.bad("signing", "git config "+key+" true", "%v", err)
			return
		}
		if sign {
			wanted = key
		}
	}
	stamp, err := d.Repo.Stamp(d.Now())
	if wanted == "" || err != nil { // which identity has told
		return
	}
	_, err = d.Repo.WriteSigned(ctx, object.CommitData{Tree: d.Repo.Format.EmptyTree(), Author: stamp, Committer: stamp, Message: "lease: can this be signed?\n"})
	if err != nil {
		d.bad("signing", "git config user.signingKey KEY && git config gpg.format FORMAT   (ssh, openpgp or x509; or: git config "+wanted+" false)", "%v", err)
		return
	}
	d.good("signing", "commits can be signed, as %s wants it", wanted)
}
