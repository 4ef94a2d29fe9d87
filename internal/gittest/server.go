package gittest

import (
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// A Server speaks for repositories of this machine over the loopback
// interface.
type Server struct {
	// Addr is where it listens, "127.0.0.1:port".
	Addr string
	// CloneArgs must be given to git clone; the clone remembers them.
	CloneArgs []string

	scheme string // all of the URL before the address
}

// URL is the URL of a repository, given by its directory.
func (s Server) URL(dir string) string {
	return s.scheme + s.Addr + filepath.ToSlash(dir)
}

// Behind is the same server as it is reached through a proxy in front of it.
func (s Server) Behind(p *Proxy) Server {
	s.Addr = p.Addr
	return s
}

// Daemon starts git daemon for the repositories below root, for reading and
// writing. There is one process for each connection and none besides, so no
// port is guessed and nothing outlives the test.
func Daemon(t T, root string) Server {
	t.Helper()
	path := filepath.Join(Git(t, root, "--exec-path"), "git-daemon")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("git daemon is not installed")
	}
	env, _ := Env(t)
	addr := listen(t, func(conn *net.TCPConn, done <-chan struct{}) {
		cmd := Command(t, env, root, path, "--inetd", "--export-all", "--enable=receive-pack", root)
		answer(cmd, conn, done)
	})
	return Server{Addr: addr, scheme: "git://"}
}

// answer runs cmd with conn as its standard input and output, as inetd does.
func answer(cmd *exec.Cmd, conn *net.TCPConn, done <-chan struct{}) {
	conn.SetNoDelay(false) // Go's default is not that of other servers
	file, err := conn.File()
	if err != nil {
		return
	}
	cmd.Stdin, cmd.Stdout = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	file.Close()
	conn.Close() // the end is the process's to tell
	if err != nil {
		return
	}
	ended := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		select {
		case <-ended:
		case <-done:
			syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		}
	})
	cmd.Wait()
	close(ended)
	wait.Wait()
}

// SSHD starts an sshd that lets the user who runs the test in, with a key made
// for it, and gives git to the session as Env does. Neither the user's nor the
// machine's ssh configuration is read. Without an sshd that runs, the test is
// skipped.
func SSHD(t T) Server {
	t.Helper()
	sshd := sshdPath(t)
	me, err := user.Current()
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	env, home := Env(t)
	dir := t.TempDir()
	for _, key := range []string{"host", "user"} {
		r := Run(t, Command(t, env, dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", key, "-f", key))
		if r.Code != 0 {
			t.Fatalf("ssh-keygen: %s", r.Stderr)
		}
	}
	config := filepath.Join(dir, "sshd_config")
	Write(t, dir, map[string]string{
		"known_hosts": "gittest " + Read(t, dir, "host.pub"),
		"sshd_config": strings.Join([]string{
			"HostKey " + filepath.Join(dir, "host"),
			"AuthorizedKeysFile " + filepath.Join(dir, "user.pub"),
			"PidFile none",
			"StrictModes no", // temporary directories are often anyone's to list
			"UsePAM no",
			"PasswordAuthentication no",
			"KbdInteractiveAuthentication no",
			"PrintMotd no",
			"UseDNS no",
			"SetEnv PATH=" + lookup(env, "PATH") +
				" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=" + filepath.Join(home, ".gitconfig"),
		}, "\n") + "\n",
	})
	if r := Run(t, Command(t, env, dir, sshd, "-t", "-f", config)); r.Code != 0 {
		t.Skipf("sshd cannot run here: %s", strings.TrimSpace(r.Stderr))
	}
	addr := listen(t, func(conn *net.TCPConn, done <-chan struct{}) {
		answer(Command(t, env, dir, sshd, "-i", "-f", config, "-E", filepath.Join(dir, "log")), conn, done)
	})
	ssh := "ssh -F none -o HostKeyAlias=gittest -o BatchMode=yes -o IdentitiesOnly=yes" +
		" -o UserKnownHostsFile='" + filepath.Join(dir, "known_hosts") + "'" +
		" -i '" + filepath.Join(dir, "user") + "'"
	return Server{
		Addr:      addr,
		CloneArgs: []string{"--config=core.sshCommand=" + ssh},
		scheme:    "ssh://" + me.Username + "@",
	}
}

// sshdPath finds sshd, which users seldom have in PATH and which insists on
// being started by its whole path.
func sshdPath(t T) string {
	t.Helper()
	for _, name := range []string{"sshd", "/usr/sbin/sshd", "/usr/local/sbin/sshd"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("sshd is not installed")
	return ""
}
