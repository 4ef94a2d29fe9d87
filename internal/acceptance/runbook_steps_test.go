package acceptance

import (
	"os"
	"path/filepath"
)

// runbookSteps are landings of which a step is not done.
func runbookSteps() map[string]func(runbookCase) {
	return map[string]func(runbookCase){
		"a step that failed": func(c runbookCase) {
			c.lands(1, "--step", "upload=test -e works")
			c.s.write(map[string]string{"works": ""})
			c.book.run(c.s, "step")
			c.stands("free", "land step step")
		},
		"a step of which nobody knows": func(c runbookCase) {
			c.diesInStep()
			c.book.run(c.s, "step-done")
			c.stands("free", "land step step")
		},
		"a step to be run again": func(c runbookCase) {
			c.diesInStep()
			c.s.write(map[string]string{"works": ""})
			c.book.run(c.s, "step-redo")
			c.stands("free", "land step")
		},
		"a step whose command is wrong": func(c runbookCase) {
			c.lands(1, "--step", "upload=false")
			c.book.run(c.s, "step-again")
			c.stands("free", "land step step")
		},
		"a step that comes late": func(c runbookCase) {
			op := c.lands(1, "--step", "upload=test -e works")
			c.other.exits(0, "git-lease", "break", "main", "--operation", op, "--reason", "on a journey")
			c.other.write(map[string]string{"theirs.txt": "theirs\n"})
			c.other.force("--", "theirs.txt")
			c.s.write(map[string]string{"works": ""})
			c.book.run(c.s, "step-anyway")
			c.stands("free", "land step break land acquire step")
		},
		"a step that is not wanted": func(c runbookCase) {
			c.lands(1, "--step", "upload=false")
			c.book.run(c.s, "step-abort")
			c.stands("free", "land step abort")
		},
		"a step of a clone that is gone": func(c runbookCase) {
			op := c.lands(1, "--step", "upload=false")
			if err := os.RemoveAll(filepath.Join(c.s.dir, ".git")); err != nil {
				c.Fatal(err)
			}
			c.book.run(c.other, "step-elsewhere", "ID="+op)
			c.stands("free", "land step break step release")
		},
	}
}

// lands lands mine.txt with steps, and returns the operation.
func (c runbookCase) lands(code int, steps ...string) string {
	c.Helper()
	args := append(append([]string{"--json", "--force-unverified", "--reason", "a step is what is tested", "-m", "mine"}, steps...), "--", "mine.txt")
	return decode[struct{ Operation string }](c.T, c.s.exits(code, "git-land", args...)).Operation
}

// diesInStep lands mine.txt, and dies in its step.
func (c runbookCase) diesInStep() {
	c.Helper()
	r := c.s.try("sh", "-c", `echo $$ >pid; exec git-land --force-unverified --reason "a step is what is tested" -m mine --step 'upload=test -e works || kill -9 $(cat pid)' -- mine.txt`)
	if r.Code != 137 {
		c.Fatalf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
}
