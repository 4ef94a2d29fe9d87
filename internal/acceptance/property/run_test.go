package property

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gitland/internal/gittest"
)

func writeHead(own, text string) error {
	return os.WriteFile(filepath.Join(own, "HEAD"), []byte(text+"\n"), 0o644)
}

// run does all of a case.
func (c *caseOf) run() {
	rounds := 1
	if c.chance(20, wayTwice) {
		rounds = 2
	}
	if c.tip != "" && c.chance(3, repoNewBranch) {
		c.onto = "a/new/one"
	} else if c.chance(4, heldWay) {
		c.acquire()
	}
	for c.round = range rounds {
		p := c.draw()
		if c.onto != "" {
			p.refuse(0, "a target that does not exist beside others")
			p.args = append([]string{"--onto", c.onto}, p.args...)
		}
		seen := c.look()
		finished := func() {}
		if p.landing {
			finished = c.othersLand()
		}
		end := c.land(p)
		finished()
		if !c.check(p, seen, end) {
			return
		}
	}
}

// acquire takes the lease for the session of the case.
func (c *caseOf) acquire() {
	c.env = gittest.With(c.env, "GIT_LEASE_SESSION=property")
	r := gittest.Run(c.t, gittest.Command(c.t, c.env, c.cwd, "git-lease", "acquire", "--json", "-m", "held"))
	if r.Code != 0 {
		c.t.Fatalf("git-lease acquire: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	c.begun = true
}

// othersLand starts a landing in another clone. The function that it returns waits for it.
func (c *caseOf) othersLand() func() {
	dir := c.otherSeat()
	env := gittest.With(c.env, "GIT_DIR", "GIT_WORK_TREE", "GIT_LEASE_SESSION")
	left := c.begun || c.drawn[endKill] || c.drawn[endKillGroup] || c.drawn[endCtrlC] // the lease may stay held
	patience := "10m"
	if left {
		patience = "3s"
	}
	cmd := gittest.Command(c.t, env, dir, "git-land", append(append([]string{"--timeout", patience}, landing...), "-m", c.theirFile(), "--", c.theirFile())...)
	done := make(chan gittest.Result, 1)
	go func() { done <- gittest.Run(c.t, cmd) }()
	return func() {
		if r := <-done; r.Code != 0 && !(r.Code == 3 && left) {
			c.t.Errorf("the others' landing: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
		}
	}
}

// An ending is how a landing ended, after all that it took.
type ending struct {
	gittest.Result
	interrupted bool // once, or more often
	resumed     *gittest.Result
	settled     bool // all that it had started was waited for before it was concluded
}

// told is what --json prints.
type told struct {
	Status string `json:"status"`
	Commit string `json:"commit"`
	Local  string `json:"local"`
	Error  struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Hint    string `json:"hint"`
	} `json:"error"`
}

func (e ending) told() (t told) {
	json.Unmarshal([]byte(e.Stdout), &t) // what is no JSON tells nothing
	return t
}

// land lands, is ended at random in a third of the cases, and then concludes.
func (c *caseOf) land(p *plan) ending {
	if c.r.IntN(3) > 0 {
		return ending{Result: c.tool(p.args...), settled: true}
	}
	end := c.interrupted(p.args)
	c.note("ended: exit %d\n%s%s", end.Code, end.Stdout, end.Stderr)
	if !end.interrupted {
		return end
	}
	c.unlock()
	if c.r.IntN(2) == 0 {
		c.has(endResumed)
		r := c.tool("resume", "--json")
		c.note("resume: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
		end.resumed = &r
		if r.Code != 0 && r.Code != 1 {
			c.t.Errorf("git land resume: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
		}
		if r.Code == 0 && strings.Contains(r.Stdout, `"landed":true`) {
			end.Result = r
			return end
		}
	}
	c.has(endAgain)
	end.Result = c.tool(p.args...)
	return end
}

func (c *caseOf) tool(args ...string) gittest.Result {
	c.t.Helper()
	return gittest.Run(c.t, gittest.Command(c.t, c.env, c.cwd, "git-land", args...))
}

// interrupted runs a landing and ends it, at a git process or after some time.
func (c *caseOf) interrupted(args []string) ending {
	cmd := gittest.Command(c.t, c.env, c.cwd, "git-land", args...)
	signal, group := syscall.SIGKILL, true
	switch c.r.IntN(3) {
	case 0:
		c.has(endCtrlC)
		signal = syscall.SIGINT
	case 1:
		c.has(endKillGroup)
	default:
		c.has(endKill)
		group = false
	}
	if group && c.r.IntN(2) == 0 {
		c.has(endAtCall)
		killer := gittest.KillGit(c.t)
		cmd.Env = killer.Env(c.env)
		at := gittest.Point{N: 1 + c.r.IntN(14), After: c.r.IntN(2) == 0, Signal: signal}
		r, killed := killer.Run(cmd, at)
		c.note("%v", at)
		return ending{Result: r, interrupted: killed, settled: true}
	}
	return c.endedAfter(cmd, time.Duration(c.r.IntN(300))*time.Millisecond, signal, group)
}

// endedAfter ends a command after some time, and waits for all that it had started.
func (c *caseOf) endedAfter(cmd *exec.Cmd, after time.Duration, signal syscall.Signal, group bool) ending {
	alive, hold, err := os.Pipe()
	c.must(err)
	defer alive.Close()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.ExtraFiles = []*os.File{hold} // every descendant has it open until it ends
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.must(cmd.Start())
	hold.Close()
	c.note("%v after %v, group: %v", signal, after, group)
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	end := ending{settled: true}
	select {
	case err = <-done:
	case <-time.After(after):
		end.interrupted = true
		if pid := cmd.Process.Pid; group {
			syscall.Kill(-pid, signal) // it may have ended just now
		} else {
			syscall.Kill(pid, signal)
		}
		err = <-done
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	alive.Read(make([]byte, 1)) // its end
	end.Result = gittest.Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: gittest.ExitCode(cmd)}
	return end
}

// unlock removes the locks that git leaves behind when it is killed, as whoever serves
// the repository, or works in it, has to.
func (c *caseOf) unlock() {
	for _, dir := range []string{c.gitDir, c.remote} {
		c.must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "objects" || d.Name() == "lease" && filepath.Dir(path) == c.gitDir):
				return filepath.SkipDir
			case strings.HasSuffix(path, ".lock"):
				c.note("left behind: %s", path)
				return os.Remove(path)
			}
			return nil
		}))
	}
}
