package child

import "golang.org/x/sys/unix"

// processes are those of our group, as far as they can be seen.
func processes() []process {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", unix.Getpgrp())
	if err != nil {
		return nil
	}
	var all []process
	for _, p := range list {
		all = append(all, process{int(p.Proc.P_pid), int(p.Eproc.Ppid), int(p.Eproc.Pgid)})
	}
	return all
}
