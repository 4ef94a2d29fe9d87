package acceptance

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitland/internal/gittest"
)

// An installer is a tool that puts a pre-push hook into a repository.
type installer struct {
	files   map[string]string // what it is told by
	install []string
	// runs is what git runs with both, ours first, when the hook is a file; keeps is that
	// the tool leaves ours running when it comes after it.
	runs  string
	keeps bool
	after string // what git runs then, if not the same
}

const preCommitConfig = `repos:
- repo: local
  hooks:
  - id: told
    name: told
    language: system
    entry: sh -c 'echo ran >>"$TOLD"'
    always_run: true
    pass_filenames: false
`

var installers = map[string]installer{
	"husky": {
		files:   map[string]string{".husky/pre-push": "cat >/dev/null\necho ran >>\"$TOLD\"\n"},
		install: []string{"husky"},
		runs:    "_/pre-push, _.before-git-lease/pre-push",
	},
	"lefthook": {
		files: map[string]string{
			"lefthook.yml":            "pre-push:\n  scripts:\n    told:\n      runner: sh\n",
			".lefthook/pre-push/told": "echo ran >>\"$TOLD\"\n",
		},
		install: []string{"lefthook", "install"},
		runs:    "hooks/pre-push, hooks.before-git-lease/pre-push",
	},
	"pre-commit": {
		files:   map[string]string{".pre-commit-config.yaml": preCommitConfig},
		install: []string{"pre-commit", "install", "--hook-type=pre-push"},
		runs:    "hooks/pre-push, hooks.before-git-lease/pre-push",
		keeps:   true,
		after:   "hooks/pre-push.legacy, hooks/pre-push",
	},
}

// withTools puts the directories of GITLAND_TOOLS on the PATH of s.
func (s seat) withTools(name string) seat {
	s.t.Helper()
	tools := os.Getenv("GITLAND_TOOLS")
	if tools == "" {
		s.t.Skip("GITLAND_TOOLS does not name where the tools are, as ./scripts/soak does")
	}
	for _, dir := range append(filepath.SplitList(tools), filepath.SplitList(os.Getenv("PATH"))...) {
		if exists(filepath.Join(dir, name)) {
			s.env = gittest.WithPath(s.env, tools)
			return s
		}
	}
	s.t.Skipf("no %s in GITLAND_TOOLS", name)
	return s
}

// installed is all that installers write: hooks, husky's directory, configuration.
func (s seat) installed() map[string]string {
	s.t.Helper()
	all := map[string]string{".git/config": gittest.Read(s.t, s.dir, ".git/config")}
	for _, dir := range []string{".git", ".husky"} {
		if !exists(filepath.Join(s.dir, dir)) {
			continue
		}
		for name, content := range gittest.Files(s.t, filepath.Join(s.dir, dir)) {
			if dir == ".husky" || strings.HasPrefix(name, "hooks") || strings.HasPrefix(name, "lease/hooks") {
				all[dir+"/"+name] = content
			}
		}
	}
	return all
}

// set is a clone with what the tool is told by, and what is told in the file TOLD.
func (in installer) set(t *testing.T, h hooked) seat {
	t.Helper()
	s := h.seat
	s.dir = gittest.Clone(t, h.git("config", "remote.origin.url"))
	s = s.with("TOLD=" + filepath.Join(t.TempDir(), "told"))
	s.write(in.files)
	s.git("add", "-A")
	return s
}

// change is a commit on what main is at the remote, with the files of the index. It is no
// other one also within one second: pre-commit runs nothing for what the remote has.
func (s seat) change() string {
	s.t.Helper()
	s.git("fetch", "-q", "origin")
	return s.git("commit-tree", "-p", "origin/main", "-m", fmt.Sprint("by hand ", time.Now().UnixNano()), s.git("write-tree"))
}

// told reports whether the tool's hook ran since this was asked last.
func (s seat) told() bool {
	s.t.Helper()
	var path string
	for _, v := range s.env {
		if p, is := strings.CutPrefix(v, "TOLD="); is {
			path = p
		}
	}
	return os.Remove(path) == nil
}

// With tools that install hooks, whichever came first: both hooks run, ours refuses,
// status says what runs in which order, and without ours all is as the tool made it.
func TestOtherInstallers(t *testing.T) {
	t.Parallel()
	for name, in := range installers {
		for _, mode := range []string{"file", "configured"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				(seat{t: t}).withTools(in.install[0])
				h := newHooked(t)
				h.seat = h.withTools(in.install[0])
				if mode == "configured" {
					h.seat = h.newer()
				} else {
					onlyFiles(t)
				}
				plain := in.set(t, h)
				plain.exits(0, in.install[0], in.install[1:]...)
				without := plain.installed()
				in.works(t, h, mode, false, without)
				in.works(t, h, mode, true, without)
			})
		}
	}
}

func (in installer) works(t *testing.T, h hooked, mode string, oursFirst bool, without map[string]string) {
	t.Helper()
	s := in.set(t, h)
	runs := in.runs
	if mode == "configured" {
		_, theirs, _ := strings.Cut(in.runs, ", ")
		runs = "hook.git-lease, " + strings.Replace(theirs, ".before-git-lease", "", 1)
	}
	if oursFirst {
		s.says("install", "installed")
		s.exits(0, in.install[0], in.install[1:]...)
		if mode == "configured" || in.keeps {
			if in.after != "" && mode == "file" {
				runs = in.after
			}
			s.examined(0)
			s.says("install", "unchanged")
		} else {
			if got := s.gitRuns(); got == runs {
				t.Errorf("git runs %q", got)
			}
			s.exits(0, "sh", "-c", s.examined(1)["hook"])
			s.examined(0)
			s.says("install", "unchanged")
		}
	} else {
		s.exits(0, in.install[0], in.install[1:]...)
		s.says("install", "installed")
		s.says("install", "unchanged")
	}
	if got := s.gitRuns(); got != runs {
		t.Errorf("ours first %v: git runs %q, want %q", oursFirst, got, runs)
	}
	topic := "refs/heads/" + filepath.Base(t.TempDir()) + map[bool]string{true: "ours"}[oursFirst]
	h.pushes(s, 0, "", "origin", s.change()+":"+topic)
	if !s.told() {
		t.Errorf("ours first %v: the tool's hook did not run", oursFirst)
	}
	h.pushes(s, 1, "protected by the lease main", "origin", s.change()+":main")
	ran := s.told()
	if want := mode == "configured" || oursFirst && in.keeps; ran != want {
		t.Errorf("ours first %v: the tool's hook ran for what ours refused: %v, want %v", oursFirst, ran, want)
	}
	if oursFirst && !in.keeps && mode == "file" {
		// The tool comes again, as husky does with each npm install.
		s.exits(0, in.install[0], in.install[1:]...)
		h.pushes(s, 0, "", "--dry-run", "origin", s.change()+":main")
		s.exits(0, "sh", "-c", s.examined(1)["hook"])
		s.examined(0)
	}
	s.says("uninstall", "removed")
	s.says("uninstall", "absent")
	if got := s.installed(); !maps.Equal(got, without) {
		for path := range maps.All(got) {
			if got[path] != without[path] {
				t.Errorf("ours first %v: left %s %q, was %q", oursFirst, path, got[path], without[path])
			}
		}
		t.Errorf("ours first %v: %d files, were %d", oursFirst, len(got), len(without))
	}
	h.pushes(s, 0, "", "origin", s.change()+":"+topic+"-again")
	if !s.told() {
		t.Errorf("ours first %v: the tool's hook does not run alone", oursFirst)
	}
}

// git-lfs uploads in its pre-push hook: a landing runs it, whichever hook came first,
// and our own pushes do not.
func TestLandingUploadsLFS(t *testing.T) {
	t.Parallel()
	lfs, err := exec.LookPath("git-lfs")
	if err != nil {
		t.Skip("no git-lfs")
	}
	for _, mode := range []string{"file", "configured"} {
		for _, oursFirst := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ours first %v", mode, oursFirst), func(t *testing.T) {
				t.Parallel()
				remote := gittest.Remote(t)
				s := clone(t, remote)
				if mode == "configured" {
					s = s.newer()
				} else {
					onlyFiles(t)
				}
				// A git-lfs that tells what it is called for.
				told := filepath.Join(t.TempDir(), "told")
				gittest.Script(t, filepath.Join(filepath.Dir(told), "git-lfs"), "#!/bin/sh\necho \"$1\" >>'"+told+"'\nexec '"+lfs+"' \"$@\"\n")
				s.env = gittest.WithPath(s.env, filepath.Dir(told))
				runs := "hooks/pre-push, hooks.before-git-lease/pre-push"
				if mode == "configured" {
					runs = "hook.git-lease, hooks/pre-push"
				}
				if oursFirst {
					s.says("install", "installed")
					if r := s.try("git", "lfs", "install", "--local"); mode == "file" {
						// git-lfs wants to be told to replace a hook that it does not know.
						if !strings.Contains(r.Stdout+r.Stderr, "Hook already exists: pre-push") {
							t.Errorf("git lfs install: %+v", r)
						}
						s.exits(0, "git", "lfs", "update", "--force")
						s.says("install", "installed")
					}
				} else {
					s.exits(0, "git", "lfs", "install", "--local")
					s.says("install", "installed")
				}
				s.says("install", "unchanged")
				if got := s.gitRuns(); got != runs {
					t.Errorf("git runs %q, want %q", got, runs)
				}
				s.write(map[string]string{".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "one.bin": "a large thing\n"})
				os.Remove(told)
				holder := s.session("holder")
				holder.exits(0, "git-lease", "acquire")
				holder.exits(0, "git-lease", "release")
				s.verify(".gitattributes", "one.bin")
				if got, _ := os.ReadFile(told); bytes.Contains(got, []byte("pre-push")) {
					t.Errorf("our own pushes ran git-lfs: %q", got)
				}
				s.exits(0, "git-land", "-m", "one", "--", ".gitattributes", "one.bin")
				sum := fmt.Sprintf("%x", sha256.Sum256([]byte("a large thing\n")))
				if got := gittest.Git(t, remote, "cat-file", "-p", "main:one.bin"); !strings.Contains(got, "oid sha256:"+sum) {
					t.Errorf("landed %q", got)
				}
				if got := gittest.Read(t, remote, "lfs/objects/"+sum[:2]+"/"+sum[2:4]+"/"+sum); got != "a large thing\n" {
					t.Errorf("uploaded %q", got)
				}
				s.says("uninstall", "removed")
				s.says("uninstall", "absent")
				if got := gittest.Read(t, s.dir, ".git/hooks/pre-push"); !strings.Contains(got, "git lfs pre-push") || strings.Contains(got, "git lease") {
					t.Errorf("put back %q", got)
				}
				s.exits(0, "git", "lfs", "uninstall", "--local")
				if got := gittest.Read(t, s.dir, ".git/config"); strings.Contains(got, "git-lease") {
					t.Errorf("the configuration is %q", got)
				}
				if exists(filepath.Join(s.dir, ".git/hooks/pre-push")) {
					t.Error("git-lfs does not know its hook again")
				}
			})
		}
	}
}
