package acceptance

import (
	"os"
	"strings"
	"syscall"

	"gitland/internal/gittest"
)

// unit is what is landed in every scenario.
const unit = "x"

func landCommand(more ...string) []string {
	return append([]string{"git-land", "-m", "land unit-" + unit, "--unit", "unit-" + unit}, more...)
}

var forced = []string{"--force-unverified", "--reason", "a kill is what is tested"}

func scenarios() []scenario {
	mine := []string{"GIT_LEASE_SESSION=mine"}
	force := landCommand(append(forced, "--", unit)...)
	check := landCommand("-x", `sh "$STAGE/check"`, "--", unit)
	steps := landCommand(append(append(append([]string{}, forced...), twoSteps...), "--", unit)...)
	motion := append([]string{"git-lease", "run"}, twoSteps...)
	return []scenario{
		{name: "acquire", command: []string{"git-lease", "acquire", "--format=json"}, end: endHold},
		{name: "acquire in a session", env: mine, command: []string{"git-lease", "acquire"}, end: endSession},
		{name: "release", prepare: held, env: mine, command: []string{"git-lease", "release"}, end: endRelease},
		{name: "run", command: []string{"git-lease", "run", "--", "sh", "-c", "exit 0"}, end: endHold},
		{name: "break", prepare: heldByOther, command: breaking, end: endBreak},
		{name: "first landing", fresh: true, prepare: change, command: force, end: endLanding(force, 2)},
		{name: "landing", prepare: verified, command: landCommand("--", unit), end: endLanding(landCommand("--", unit), begunUnits+1)},
		{name: "held landing", prepare: moving, command: check, end: endLanding(check, begunUnits+2)},
		{name: "landing under a lease", prepare: changeUnderLease, env: mine, command: force, end: endUnderLease(force)},
		{name: "landing without atomic pushes", fresh: true, prepare: noAtomic, command: force, end: endLanding(force, 2)},
		{name: "landing with steps", prepare: change, command: steps, end: endSteps(steps)},
		{name: "motion of steps", command: motion, end: endMotion(motion)},
		{name: "override", prepare: pastLease, command: overriding, end: endOverride},
		{name: "reconcile", prepare: disagreement, command: fixing, end: endReconcile},
	}
}

// begun has the chain begun by a landing, and both clones know of it and of the
// remote.
func begun(st *stage) {
	for _, s := range []seat{st.s, st.other} {
		landUnit(st, s, "of-"+strings.TrimPrefix(s.dir, st.dir+"/"))
	}
}

func landUnit(st *stage, s seat, name string) {
	st.t.Helper()
	s.write(map[string]string{name: name + "\n"})
	s.exits(0, "git-land", append(append([]string{"-m", "land unit-" + name, "--unit", "unit-" + name}, forced...), "--", name)...)
}

// change has something to land, in a clone that knows nothing of the remote.
func change(st *stage) { st.s.write(map[string]string{unit: "x\n"}) }

func verified(st *stage) {
	change(st)
	st.s.verify(unit)
}

func held(st *stage) {
	st.s.with("GIT_LEASE_SESSION=mine").exits(0, "git-lease", "acquire")
}

func changeUnderLease(st *stage) {
	held(st)
	change(st)
}

func heldByOther(st *stage) {
	s := st.other.with("GIT_LEASE_SESSION=theirs")
	g := decode[grant](st.t, s.exits(0, "git-lease", "acquire", "--format=json"))
	gittest.Write(st.t, st.dir, map[string]string{"operation": g.Operation})
}

func noAtomic(st *stage) {
	gittest.Git(st.t, st.remote(), "config", "receive.advertiseAtomic", "false")
	change(st)
}

// moving has a check that lands something of another clone, once: so the base
// moves under it, and the landing goes the held way. What the check runs is
// killed with it, but its git calls are not counted.
func moving(st *stage) {
	change(st)
	st.other.write(map[string]string{"moved": "moved\n"})
	gittest.Script(st.t, st.path("check"), `#!/bin/sh
cd "$STAGE/other" || exit 1
[ -e ../moved ] && exit 0
env -i HOME="$HOME" PATH="$STAGE_PATH" GIT_CONFIG_NOSYSTEM=1 git-land -m 'land unit-moved' --unit unit-moved \
	--force-unverified --reason moving -- moved && : >../moved
`)
}

// disagreement has two things to settle: a landing without its record, and a
// commit that was pushed past the tool.
func disagreement(st *stage) {
	gittest.Git(st.t, st.remote(), "update-ref", "refs/notes/landing/main", "refs/notes/landing/main~1")
	gittest.Commit(st.t, st.other.dir, "past the tool", map[string]string{"past": "past\n"})
	st.other.git("push", "-q", "origin", "HEAD:main")
}

var fixing = []string{"git-land", "reconcile", "--fix", "--reason", "the site was down"}

// settle ends a hold that nobody has the token of any more.
func (st *stage) settle(at gittest.Point) {
	st.t.Helper()
	if st.state() != "held" {
		return
	}
	if at.Signal == syscall.SIGTERM {
		st.t.Errorf("told to end, it left the lease held")
	}
	st.other.exits(0, "git-lease", "break", "--operation", st.ofTip("Lease-Operation"), "--reason", "it was killed")
}

// over checks that nothing is stuck: another clone can land. n is how many
// landings of units there are then, each on top of the one before; 0 where
// something else came between.
func (st *stage) over(n int) {
	st.t.Helper()
	if got := st.state(); got != "free" && got != "" {
		st.t.Errorf("the lease is %s", got)
	}
	landUnit(st, st.other, "next")
	if n > 0 {
		oneStory(st.t, st.remote(), n)
	}
	st.other.exits(0, "git-land", "reconcile")
	st.clean()
}

// begunUnits are the landings of begun, and the last one of over.
const begunUnits = 3

// endHold: the lease was taken or not; where it was and the token is lost, it is
// broken, on the record.
func endHold(st *stage, first gittest.Result, at gittest.Point) {
	if g := (grant{}); first.Code == 0 && strings.Contains(first.Stdout, "token") {
		g = decode[grant](st.t, first)
		st.s.with("GIT_LEASE_TOKEN="+g.Token).exits(0, "git-lease", "release", g.Name)
	}
	st.settle(at)
	n := st.events()
	if n["acquire"] > 1 || n["acquire"] != n["release"]+n["break"]+n["abort"] {
		st.t.Errorf("events %v", n)
	}
	st.over(begunUnits)
}

// endSession: running the same again tells that it is held already, or takes it;
// either way the session can give it back.
func endSession(st *stage, _ gittest.Result, at gittest.Point) {
	s := st.s.with("GIT_LEASE_SESSION=mine")
	if r := s.try("git-lease", "acquire"); r.Code != 0 && (r.Code != 3 || !strings.Contains(r.Stderr, "by this session already")) {
		st.t.Errorf("acquire again: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	s.exits(0, "git-lease", "release")
	if n := st.events(); n["acquire"] != n["release"] || n["acquire"] > 2 || n["break"] > 0 {
		st.t.Errorf("events %v", n)
	}
	st.over(begunUnits)
}

func endRelease(st *stage, _ gittest.Result, _ gittest.Point) {
	r := st.s.with("GIT_LEASE_SESSION=mine").try("git-lease", "release")
	if r.Code != 0 && (r.Code != 3 || st.state() != "free") {
		st.t.Errorf("release again: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if n := st.events(); n["release"] != 1 {
		st.t.Errorf("events %v", n)
	}
	st.over(begunUnits)
}

func endBreak(st *stage, _ gittest.Result, _ gittest.Point) {
	held := st.state() == "held"
	r := st.s.try("sh", breaking[1:]...)
	if held != (r.Code == 0) || !held && r.Code != 3 {
		st.t.Errorf("break again: held %v, exit %d\n%s%s", held, r.Code, r.Stdout, r.Stderr)
	}
	if n := st.events(); n["break"] != 1 {
		st.t.Errorf("events %v", n)
	}
	st.other.with("GIT_LEASE_SESSION=theirs").exits(6, "git-lease", "release")
	st.over(begunUnits)
}

// breaking breaks the lease of the operation that a file names.
var breaking = []string{"sh", "-c", `exec git-lease break --operation "$(cat "$STAGE/operation")" --reason "it does not answer"`}

func endLanding(command []string, n int) func(*stage, gittest.Result, gittest.Point) {
	return func(st *stage, first gittest.Result, _ gittest.Point) {
		st.conclude(first, st.s, command)
		st.over(n)
	}
}

// endUnderLease: the landing leaves the session's lease held.
func endUnderLease(command []string) func(*stage, gittest.Result, gittest.Point) {
	return func(st *stage, first gittest.Result, _ gittest.Point) {
		s := st.s.with("GIT_LEASE_SESSION=mine")
		st.conclude(first, s, command)
		if got := st.state(); got != "held" {
			st.t.Errorf("the session's lease is %s", got)
		}
		s.exits(0, "git-lease", "release")
		st.over(begunUnits + 1)
	}
}

// twoSteps do something that would be seen if it were done twice.
var twoSteps = []string{
	"--step", `one=echo done >>"$STAGE/one"`, "--step-check", `one=test -e "$STAGE/one"`,
	"--step", `two=test -e "$STAGE/one" && echo done >>"$STAGE/two"`, "--step-check", `two=test -e "$STAGE/two"`,
}

// steppedOnce checks that each of the two steps was done once.
func (st *stage) steppedOnce() {
	st.t.Helper()
	for _, name := range []string{"one", "two"} {
		if got := gittest.Read(st.t, st.dir, name); got != "done\n" {
			st.t.Errorf("step %s has left %q", name, got)
		}
	}
}

// endSteps: whatever dies, the landing is one, and each step after it is done once.
func endSteps(command []string) func(*stage, gittest.Result, gittest.Point) {
	return func(st *stage, first gittest.Result, _ gittest.Point) {
		st.conclude(first, st.s, command)
		st.steppedOnce()
		st.over(begunUnits + 1)
	}
}

// endMotion: it is gone on with, or has not begun, and then it is run again.
func endMotion(command []string) func(*stage, gittest.Result, gittest.Point) {
	return func(st *stage, _ gittest.Result, _ gittest.Point) {
		st.killTwice(st.s, "git-land", "resume")
		if r := st.s.try("git-land", "resume"); r.Code != 0 && (r.Code != 1 || !strings.Contains(r.Stderr, "did not begin")) {
			st.t.Errorf("resume: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
		}
		if _, err := os.Stat(st.path("two")); err != nil {
			st.s.exits(0, command[0], command[1:]...)
		}
		st.steppedOnce()
		st.over(begunUnits)
	}
}

// conclude brings a killed landing to its end, by what is itself killed twice,
// and checks what was said of it on the way.
func (st *stage) conclude(first gittest.Result, s seat, command []string) {
	st.t.Helper()
	st.heed(first)
	st.killTwice(s, "git-land", "resume")
	r := s.try("git-land", "resume")
	st.heed(r)
	if r.Code != 0 && (r.Code != 1 || !strings.Contains(r.Stderr, "did not land")) {
		st.t.Errorf("resume: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	before := st.commits(unit)
	if again := s.exits(0, command[0], command[1:]...); strings.HasPrefix(again.Stdout, "already") != (before == 1) {
		st.t.Errorf("it had landed %d times: %s", before, again.Stdout)
	}
	if n := st.commits(unit); n != 1 {
		st.t.Errorf("landed %d times", n)
	}
}

// killTwice runs what ends an operation, and kills it at two points that the seed
// chooses.
func (st *stage) killTwice(s seat, command ...string) {
	st.t.Helper()
	for range 2 {
		at := variants[st.random.IntN(len(variants))]
		at.N = 1 + st.random.IntN(12)
		r, killed := st.kill(s, at, command...)
		if killed {
			st.again++
		}
		st.heed(r)
	}
}

// heed checks that what a command said of the landing is so: it says what may
// never change any more.
func (st *stage) heed(r gittest.Result) {
	st.t.Helper()
	n := st.commits(unit)
	landed := strings.Contains(r.Stdout, "landed ") || strings.Contains(r.Stdout, "finished it")
	not := strings.Contains(r.Stderr, "nothing landed") || strings.Contains(r.Stderr, "did not land") || strings.Contains(r.Stdout, "can no longer arrive")
	if landed && n != 1 || not && n != 0 && !landed {
		st.t.Errorf("it has landed %d times, and this was said: exit %d\n%s%s", n, r.Code, r.Stdout, r.Stderr)
	}
}

func endReconcile(st *stage, _ gittest.Result, _ gittest.Point) {
	st.killTwice(st.s, fixing...)
	st.s.exits(0, fixing[0], fixing[1:]...)
	st.s.exits(0, "git-land", "reconcile")
	if n := st.events(); n["repair"] != 2 {
		st.t.Errorf("events %v", n)
	}
	st.over(0)
}
