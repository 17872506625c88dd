package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// attemptTimeout is how long commands wait by default for a device to act.
const attemptTimeout = time.Minute

func devicesCommand() *cli.Command {
	return &cli.Command{
		Name:  "devices",
		Usage: "list, inspect, lock, and unlock the devices of a workspace, over the API",
		Commands: []*cli.Command{
			{
				Name:  "list",
				Usage: "list the managed devices",
				Flags: apiCommandFlags(
					&cli.StringFlag{
						Name:      "state",
						Usage:     "list devices in the `STATE` online or offline",
						Validator: validateOneOf("online", "offline"),
					},
					&cli.StringFlag{Name: "account", Usage: "list devices of the connected account `ID`"},
					&cli.StringFlag{Name: "search", Usage: "list devices whose name contains `TEXT`"},
				),
				Action: withClient(listDevices),
			},
			{
				Name:      "get",
				Usage:     "show a device with its errors and warnings",
				ArgsUsage: "DEVICE",
				Flags:     apiCommandFlags(),
				Action:    onDevice(showDevice),
			},
			{
				Name:      "codes",
				Usage:     "list the managed and unmanaged codes of a device, without PINs",
				ArgsUsage: "DEVICE",
				Flags:     apiCommandFlags(),
				Action:    onDevice(listCodesOfDevice),
			},
			{
				Name:      "lock",
				Usage:     "lock a door, and wait until the device has done it",
				ArgsUsage: "DEVICE",
				Flags:     append([]cli.Flag{timeoutFlag()}, apiFlags()...),
				Action:    onDevice(moveBolt(lockDoor, "locked")),
			},
			{
				Name:      "unlock",
				Usage:     "unlock a door, and wait until the device has done it",
				ArgsUsage: "DEVICE",
				Flags:     append([]cli.Flag{timeoutFlag()}, apiFlags()...),
				Action:    onDevice(moveBolt(unlockDoor, "unlocked")),
			},
		},
	}
}

func timeoutFlag() cli.Flag {
	return &durationFlag{
		Name:      "timeout",
		Value:     attemptTimeout,
		Usage:     "wait at most `DURATION` for the device",
		Validator: positive[time.Duration],
	}
}

// onDevice runs act on the device that the argument names by its id, the end of its id, or its exact name.
func onDevice(act func(context.Context, *cli.Command, *client, api.Device) error) cli.ActionFunc {
	return withClient(func(ctx context.Context, c *cli.Command, to *client) error {
		if c.Args().First() == "" {
			return usagef(
				"missing argument: the id or the name of the device; `deviceaccess-server devices list` shows them",
			)
		}
		d, err := to.findDevice(ctx, c.Args().First())
		if err != nil {
			return err
		}
		return act(ctx, c, to, d)
	})
}

var shortIDPattern = regexp.MustCompile(`^(?:…|\.\.\.)?([0-9a-f]{6,12})$`)

// findDevice returns the device with an id, the end of an id, or an exact name.
func (o *client) findDevice(ctx context.Context, text string) (api.Device, error) {
	if _, err := uuid.Parse(text); err == nil {
		answer, err := api.Call[api.DeviceResponse](ctx, o.GetDevice, api.GetDeviceRequest{DeviceID: text})
		if err != nil {
			return api.Device{}, err
		}
		return answer.Device, nil
	}
	found, err := filtered(o.Devices(ctx, api.ListDevicesRequest{Search: text}), func(d api.Device) bool {
		return d.DisplayName == text
	})
	if m := shortIDPattern.FindStringSubmatch(text); err == nil && len(found) == 0 && m != nil {
		found, err = filtered(o.Devices(ctx, api.ListDevicesRequest{}), func(d api.Device) bool {
			return strings.HasSuffix(d.DeviceID, m[1])
		})
	}
	switch {
	case err != nil:
		return api.Device{}, err
	case len(found) == 0:
		return api.Device{}, notFoundf(
			"device %q does not exist; `deviceaccess-server devices list` shows the devices",
			text,
		)
	case len(found) > 1:
		ids := make([]string, len(found))
		for i, d := range found {
			ids[i] = d.DeviceID
		}
		return api.Device{}, usagef("%d devices are called %q: choose one by its id: %s", len(found), text,
			strings.Join(ids, ", "))
	}
	return found[0], nil
}

// filtered collects the records that match.
func filtered[T any](records iter.Seq2[T, error], match func(T) bool) (out []T, err error) {
	for record, err := range records {
		if err != nil {
			return nil, err
		}
		if match(record) {
			out = append(out, record)
		}
	}
	return out, nil
}

func listDevices(ctx context.Context, c *cli.Command, to *client) error {
	devices, err := filtered(
		to.Devices(ctx, api.ListDevicesRequest{ConnectedAccountID: c.String("account"), Search: c.String("search")}),
		func(d api.Device) bool {
			return c.String("state") == "" || d.Properties.Online == (c.String("state") == "online")
		},
	)
	if err != nil {
		return err
	}
	accounts, err := to.accountNames(ctx, len(devices))
	if err != nil {
		return err
	}
	return deviceListing(accounts).print(c, devices)
}

// accountNames returns the names of the connected accounts by id. It asks the server only if there are records.
func (o *client) accountNames(ctx context.Context, records int) (map[string]string, error) {
	names := map[string]string{}
	if records == 0 {
		return names, nil
	}
	for a, err := range o.ConnectedAccounts(ctx, api.ListConnectedAccountsRequest{}) {
		if err != nil {
			return nil, err
		}
		names[a.ConnectedAccountID] = a.DisplayName
	}
	return names, nil
}

func deviceListing(accounts map[string]string) listing[api.Device] {
	return listing[api.Device]{
		columns: []column[api.Device]{
			{"DEVICE", func(d api.Device) string { return d.DeviceID }},
			{"NAME", func(d api.Device) string { return printable(d.DisplayName) }},
			{"TYPE", func(d api.Device) string { return printable(d.DeviceType) }},
			{
				"ACCOUNT",
				func(d api.Device) string { return named(accounts[d.ConnectedAccountID], d.ConnectedAccountID) },
			},
			{"STATE", connectionState},
			{"BATTERY", batteryState},
			{"BOLT", boltState},
		},
		id:    func(d api.Device) string { return d.DeviceID },
		empty: "There are no such devices. `deviceaccess-server accounts connect --help` shows what you can connect.",
	}
}

// connectionState describes whether a device is online, and since when it is not.
func connectionState(d api.Device) string {
	if d.Properties.Online {
		return "online"
	}
	if since := offlineSince(d); !since.IsZero() {
		return "offline for " + formatAge(time.Since(since))
	}
	return "offline"
}

// offlineSince returns when a device went offline. It is zero if that is unknown.
func offlineSince(d api.Device) time.Time {
	for _, p := range d.Errors {
		if p.IsDeviceError != nil && *p.IsDeviceError && !p.CreatedAt.IsZero() {
			return p.CreatedAt
		}
	}
	return time.Time{}
}

func batteryState(d api.Device) string {
	if d.Properties.BatteryLevel == nil {
		return ""
	}
	return fmt.Sprintf("%.0f %%", *d.Properties.BatteryLevel*100)
}

func boltState(d api.Device) string {
	switch locked := d.Properties.Locked; {
	case locked == nil:
		return ""
	case *locked:
		return "locked"
	}
	return "unlocked"
}

// showDevice prints a device. Its table also has the errors and warnings.
func showDevice(ctx context.Context, c *cli.Command, to *client, d api.Device) error {
	accounts, err := to.accountNames(ctx, 1)
	if err != nil {
		return err
	}
	l := deviceListing(accounts)
	l.columns = append(
		l.columns,
		column[api.Device]{"ADDED", func(d api.Device) string { return formatTime(d.CreatedAt) }},
	)
	l.columns = append(l.columns, problemColumns[api.Device](d.Errors, d.Warnings)...)
	return l.printOne(c, d)
}

// problemColumns returns a column per error and warning of a record.
func problemColumns[T any](errs, warnings []api.Problem) (columns []column[T]) {
	for _, p := range errs {
		columns = append(columns, column[T]{"ERROR", func(T) string { return describeProblem(p.ErrorCode, p) }})
	}
	for _, p := range warnings {
		columns = append(columns, column[T]{"WARNING", func(T) string { return describeProblem(p.WarningCode, p) }})
	}
	return columns
}

func describeProblem(code string, p api.Problem) string {
	text := printable(strings.TrimSpace(p.Message))
	if code != "" {
		text += " (" + printable(code) + ")"
	}
	if !p.CreatedAt.IsZero() {
		text = formatTime(p.CreatedAt) + "  " + text
	}
	return text
}

func lockDoor(c *api.Client) api.Operation[api.BoltRequest] { return c.LockDoor }

func unlockDoor(c *api.Client) api.Operation[api.BoltRequest] { return c.UnlockDoor }

// moveBolt returns an action that locks or unlocks a door, and waits until the device has done it.
func moveBolt(
	operation func(*api.Client) api.Operation[api.BoltRequest], done string,
) func(context.Context, *cli.Command, *client, api.Device) error {
	return func(ctx context.Context, c *cli.Command, to *client, d api.Device) error {
		answer, err := api.Call[api.ActionAttemptResponse](
			ctx,
			operation(to.Client),
			api.BoltRequest{DeviceID: d.DeviceID},
		)
		if err != nil {
			return err
		}
		moved := change{
			done: func(ctx context.Context) (bool, error) {
				now, err := to.findDevice(ctx, d.DeviceID)
				return err == nil && boltState(now) == done, err
			},
			show: "devices get " + d.DeviceID,
		}
		if err := to.await(ctx, c, answer.ActionAttempt, moved); err != nil {
			return err
		}
		fmt.Printf("%s is %s.\n", named(d.DisplayName, d.DeviceID), done)
		return nil
	}
}

// change is what an action attempt changes, which tells the outcome of an attempt that the server does not know.
type change struct {
	// done reports whether the server shows the change.
	done func(context.Context) (bool, error)
	// show is the command that shows the state, without the name of the program.
	show string
}

// await waits until an action attempt ends, for at most --timeout. If the server does not know the attempt, await waits
// until the server shows the change.
func (o *client) await(ctx context.Context, c *cli.Command, attempt api.ActionAttempt, to change) error {
	timeout := c.Duration("timeout")
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := o.AwaitKnown(waiting, attempt)
	if !errors.Is(err, api.ErrOutcomeUnknown) {
		return err
	}
	if err = api.Poll(waiting, func() (bool, error) { return to.done(waiting) }); err == nil {
		return nil
	}
	reason := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		reason = fmt.Sprintf("the change did not show within %s%s", timeout, api.PollFailureSuffix(err))
	}
	return exitError{fmt.Errorf("the outcome is unknown: %w, and %s; run `deviceaccess-server %s` to see the state",
		api.ErrOutcomeUnknown, reason, to.show), exitFailed}
}

// listCodesOfDevice lists the managed and the unmanaged codes of a device.
func listCodesOfDevice(ctx context.Context, c *cli.Command, to *client, d api.Device) error {
	codes, err := to.codesOf(ctx, d)
	if err != nil {
		return err
	}
	unmanaged, err := api.Collect(to.UnmanagedAccessCodes(ctx, d.DeviceID))
	if err != nil {
		return err
	}
	for _, u := range unmanaged {
		codes = append(codes, deviceCode{device: d, unmanaged: &u})
	}
	if c.String("output") == outputTable && !d.Properties.Online {
		fmt.Fprintf(os.Stderr, "%s is %s: changes wait until it is back.\n", named(d.DisplayName, d.DeviceID),
			connectionState(d))
	}
	l := codeListing()
	l.columns = slices.DeleteFunc(l.columns, func(c column[deviceCode]) bool { return c.title == "DEVICE" })
	return l.print(c, codes)
}
