package main

import (
	"errors"
	"fmt"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// The exit codes of commands. exitCodesHelp documents them.
const (
	exitFailed   = 1
	exitUsage    = 2
	exitNotFound = 3
	exitRefused  = 4
)

const exitCodesHelp = "Exit codes: 0 done, 1 failed, 2 wrong usage or setting, 3 the named object does not exist,\n" +
	"4 refused: the state of the data or the vendor does not allow it."

// exitError is an error with the exit code of the command.
type exitError struct {
	error
	code int
}

func (e exitError) Unwrap() error { return e.error }

// usagef returns an error about the command line or a setting.
func usagef(format string, args ...any) error {
	return exitError{fmt.Errorf(format, args...), exitUsage}
}

// notFoundf returns an error about an object that does not exist.
func notFoundf(format string, args ...any) error {
	return exitError{fmt.Errorf(format, args...), exitNotFound}
}

// refusedf returns an error about an operation that the state of the data does not allow.
func refusedf(format string, args ...any) error {
	return exitError{fmt.Errorf(format, args...), exitRefused}
}

// exitCode returns the exit code for the error of a command.
func exitCode(err error) int {
	if e, ok := errors.AsType[exitError](err); ok {
		return e.code
	}
	if wrongVariable.MatchString(err.Error()) {
		return exitUsage
	}
	if api.StatusOf(err) != 0 {
		return exitCodeOfResponse(err)
	}
	if e, ok := errors.AsType[*api.AttemptError](err); ok && e.Reason != nil {
		return exitRefused
	}
	if e := adapter.AsError(err); e != nil && !e.Class.Retryable() {
		return exitRefused
	}
	e, ok := domain.AsError(err)
	if !ok {
		return exitFailed
	}
	switch e.Kind {
	case domain.Invalid:
		return exitUsage
	case domain.NotFound:
		return exitNotFound
	case domain.Unavailable:
		return exitFailed
	}
	return exitRefused
}
