package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

// readAdvice is what to do about a file that the server's user cannot read.
const readAdvice = "change the owner of the file with chown, or its group with chgrp and its mode with chmod g+r, or let " +
	"systemd pass the file with LoadCredential"

// ExplainPermission adds the name of our user and what to do to the error of a file that we are not allowed to read.
func ExplainPermission(err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	name := strconv.Itoa(os.Geteuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return fmt.Errorf("%w: user %s cannot read the file; %s", err, name, readAdvice)
}

// CheckReadable returns an error if we are root, which reads every file, but the owner of the data directory cannot
// read the file: the service runs as that user. A service of systemd, such as serve --check-config in ExecStartPre,
// already runs as its own user.
func (c Database) CheckReadable(ctx context.Context, file string) error {
	if os.Getenv("INVOCATION_ID") != "" {
		return nil
	}
	owner, err := pglocal.OwnerOf(c.DataDir)
	if err != nil || owner.CanRead(ctx, file) {
		return err
	}
	return fmt.Errorf(
		"user %s, the owner of the data directory, cannot read %s, so a server of this user cannot start; %s",
		owner.Name(),
		file,
		readAdvice,
	)
}
