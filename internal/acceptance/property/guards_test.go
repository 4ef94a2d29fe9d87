package property

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gitland/internal/gittest"
	"gitland/internal/object"
)

// A guarded plan is one that a guard refuses, unless that is allowed.
type guarded struct {
	name    string
	feature feature
	refuses func(c *caseOf, p *plan) bool
	unsure  bool // the model cannot say it as exactly as the guard does
}

var guards = []guarded{
	{"submodule", guardSubmodule, (*caseOf).landsUnpushed, false},
	{"files", guardFiles, (*caseOf).landsTooMany, false},
	{"paths", guardPaths, (*caseOf).landsOutside, false},
	{"rename", guardRename, (*caseOf).landsHalf, true},
}

// drawGuards says what guards are to refuse, and allows it sometimes.
func (c *caseOf) drawGuards(p *plan) {
	for _, key := range []string{"land.maxFiles", "land.paths"} {
		if c.configured[key] {
			c.git("config", "--unset", key)
			delete(c.configured, key)
		}
	}
	for _, g := range guards {
		if p.refused != "" || !g.refuses(c, p) {
			continue
		}
		c.has(g.feature)
		switch {
		case c.chance(50, guardAllowed):
			p.args = append(p.args, "--allow", g.name)
		case g.unsure:
			p.unsure = string(g.feature)
		default:
			p.refuse(5, string(g.feature))
		}
	}
}

func (c *caseOf) configure(key, value string) {
	c.git("config", key, value)
	c.configured[key] = true
}

func (c *caseOf) landsUnpushed(p *plan) bool {
	return slices.ContainsFunc(slices.Concat(p.steps, p.stack), func(s step) bool { return s.to["sub"] != s.from["sub"] && c.image.unpushed(s.to["sub"]) })
}

func (c *caseOf) landsTooMany(p *plan) bool {
	if p.commits() || len(p.diff()) < 2 || c.r.IntN(12) > 0 {
		return false
	}
	c.configure("land.maxFiles", fmt.Sprint(len(p.diff())-1))
	return true
}

func (c *caseOf) landsOutside(p *plan) bool {
	if p.way != wayPaths || c.r.IntN(16) > 0 {
		return false
	}
	c.configure("land.paths", "src")
	return slices.ContainsFunc(p.diff(), func(path string) bool { return !below("src")(path) })
}

// landsHalf reports whether one half of something that may be a renaming is chosen.
func (c *caseOf) landsHalf(p *plan) bool {
	if p.commits() {
		return false
	}
	var gone, come, alsoGone, alsoCome []entry
	chosen := p.diff()
	for path := range union(c.s) {
		h, was := c.s.head[path]
		w, onDisk := c.s.work[path]
		i, is := c.s.index[path]
		e := i.entry
		if onDisk {
			e = c.s.clean(path, w)
		}
		switch now, there := p.last()[path]; {
		case slices.Contains(chosen, path) && !there:
			gone = append(gone, h)
		case slices.Contains(chosen, path):
			if !was {
				come = append(come, now)
			}
		case was && (!onDisk || !is):
			alsoGone = append(alsoGone, h)
		case !was && (is || !ignored(path)):
			alsoCome = append(alsoCome, e, i.entry)
		}
	}
	return alike(gone, alsoCome) || alike(come, alsoGone)
}

// alike reports whether an entry of each has enough lines of the other's.
func alike(a, b []entry) bool {
	return slices.ContainsFunc(a, func(one entry) bool {
		return slices.ContainsFunc(b, func(other entry) bool {
			common := 0
			for _, line := range strings.Split(one.data, "\n") {
				if line != "" && strings.Contains(other.data, line) {
					common++
				}
			}
			return common > 0
		})
	})
}

// unpushed reports whether an entry is the commit that the submodule's remote lacks.
func (im *image) unpushed(e entry) bool {
	return e.mode == gitlink && e.data == string(im.moved[len(im.moved)-1])
}

// drawHooks installs hooks of a commit, as scripts that leave the work tree alone.
func (c *caseOf) drawHooks(p *plan) {
	hooks := filepath.Join(c.gitDir, "hooks")
	c.must(os.RemoveAll(hooks))
	if c.r.IntN(100) >= 20 || !p.makes() || len(p.steps) > 1 {
		return
	}
	c.must(os.MkdirAll(hooks, 0o777))
	install := func(name, text string) { gittest.Script(c.t, filepath.Join(hooks, name), "#!/bin/sh\n"+text+"\n") }
	skipped := c.chance(35, hookSkipped)
	if skipped {
		p.args = append(p.args, "--no-verify")
	}
	switch runs := !p.commits() && !skipped; c.r.IntN(4) {
	case 0:
		c.has(hookSilent)
		install("pre-commit", "exit 0")
	case 1:
		c.has(hookChanges)
		blob := c.local.write(object.Blob, []byte("by a hook\n"))
		install("pre-commit", fmt.Sprintf("git update-index --add --cacheinfo 100644,%s,hooked", blob))
		if runs {
			p.refuse(4, "a hook changed the content")
		}
	case 2:
		c.has(hookFails)
		install("pre-commit", "exit 1")
		if runs {
			p.refuse(5, "a hook failed")
		}
	case 3:
		c.has(hookMessage)
		install("commit-msg", `echo "By a hook" >>"$1"`)
		if !skipped {
			p.steps[0].message += "By a hook\n"
		}
	}
}

// sign has git sign commits, where it can.
func (c *caseOf) sign(key string) {
	c.git("config", "commit.gpgSign", "true")
	c.git("config", "gpg.format", "ssh")
	c.git("config", "user.signingKey", key)
	c.git("config", "gpg.ssh.allowedSignersFile", key+".allowed")
}

// checkSigned looks at the signature of a commit.
func (c *caseOf) checkSigned(oid object.OID) {
	c.t.Helper()
	if r := gittest.Run(c.t, gittest.Command(c.t, c.env, c.top, "git", "verify-commit", string(oid))); r.Code != 0 {
		c.t.Errorf("%s is not signed: %s", oid, r.Stderr)
	}
}

// drawExpected names the commits that target and HEAD are to be at.
func (c *caseOf) drawExpected(p *plan) {
	head := c.head
	if p.apart {
		head = p.steps[len(p.steps)-1].oid
	}
	switch roll := c.r.IntN(100); {
	case head == "" || c.tip == "":
	case roll < 4:
		c.has(expectHead)
		p.args = append(p.args, "--expect-head", string(head))
	case roll < 6:
		c.has(expectHead)
		p.args = append(p.args, "--expect-head", strings.Repeat("0", len(head)-1)+"1")
		p.refuse(5, "another HEAD was expected")
	case roll < 10 && !p.bound:
		c.has(expectBase)
		p.bound, p.onlyOn = true, c.tip
		p.args = append(p.args, "--expect-base", string(c.tip))
	}
}
