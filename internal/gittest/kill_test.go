package gittest

import (
	"slices"
	"syscall"
	"testing"
)

func TestKillerEndsTheGroup(t *testing.T) {
	t.Parallel()
	k := KillGit(t)
	env, _ := Env(t)
	dir := t.TempDir()
	Git(t, dir, "init", "-q")
	// One call, then two with a bystander of the group beside the second.
	script := `git config a.a 1; sleep 600 & git config b.b 2; echo "went on $?"; git config c.c 3; kill $!`
	for _, c := range []struct {
		point Point
		code  int
		set   []string
	}{
		{Point{1, false, syscall.SIGKILL}, 137, nil},
		{Point{1, true, syscall.SIGKILL}, 137, []string{"a.a"}},
		{Point{2, false, syscall.SIGTERM}, 143, []string{"a.a"}},
		{Point{3, true, syscall.SIGKILL}, 137, []string{"a.a", "b.b", "c.c"}},
		{Point{4, false, syscall.SIGKILL}, 0, []string{"a.a", "b.b", "c.c"}},
	} {
		for _, key := range []string{"a", "b", "c"} {
			TryGit(t, dir, "config", "--remove-section", key)
		}
		r, killed := k.Run(Command(t, k.Env(env), dir, "sh", "-c", script), c.point)
		if r.Code != c.code || killed != (c.code != 0) {
			t.Errorf("%s: %+v, killed %v, want exit %d", c.point, r, killed, c.code)
		}
		var set []string
		for _, key := range []string{"a.a", "b.b", "c.c"} {
			if TryGit(t, dir, "config", key).Code == 0 {
				set = append(set, key)
			}
		}
		if !slices.Equal(set, c.set) {
			t.Errorf("%s: git did %q, want %q", c.point, set, c.set)
		}
		if n := len(k.Calls()); n != min(c.point.N, 3) {
			t.Errorf("%s: %d calls", c.point, n)
		}
	}
}
