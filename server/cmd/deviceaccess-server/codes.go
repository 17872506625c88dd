package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v3"
	"golang.org/x/sync/errgroup"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// codeStatuses are the values of codes list --status.
var codeStatuses = []string{
	string(api.Setting), string(api.Set), string(api.Unset), string(api.Removing), string(api.Unknown),
}

func codesCommand() *cli.Command {
	return &cli.Command{
		Name:        "codes",
		Usage:       "list, create, retry, and delete the codes of a workspace, over the API",
		Description: "These commands print no PIN, in any format. `codes create` reads one from a file.",
		Commands: []*cli.Command{
			{
				Name:  "list",
				Usage: "list the managed codes, without PINs",
				Description: "Codes that a device should have had long ago:\n\n" +
					"   deviceaccess-server codes list --status setting --older-than 10m",
				Flags: apiCommandFlags(
					&cli.StringFlag{Name: "device", Usage: "list codes of the `DEVICE`, an id or an exact name"},
					&cli.StringFlag{
						Name:      "status",
						Usage:     "list codes in the `STATUS` " + strings.Join(codeStatuses, ", "),
						Validator: validateOneOf(codeStatuses...),
					},
					&durationFlag{
						Name:      "older-than",
						Usage:     "list codes whose oldest pending change, or else creation, is older than `DURATION`",
						Validator: positive[time.Duration],
					},
					&cli.BoolFlag{Name: "with-errors", Usage: "list codes with errors"},
				),
				Action: withClient(listCodes),
			},
			{
				Name:      "get",
				Usage:     "show a code with its errors and warnings, without its PIN",
				ArgsUsage: "CODE_ID",
				Flags:     apiCommandFlags(),
				Action:    onCode(showCode),
			},
			createCodeCommand(),
			{
				Name:      "delete",
				Usage:     "delete a code, and wait until it is removed from its device",
				ArgsUsage: "CODE_ID",
				Flags:     append([]cli.Flag{noWaitFlag(), timeoutFlag()}, apiFlags()...),
				Action:    onCode(deleteCode),
			},
			{
				Name:  "retry",
				Usage: "set a code again that its device has refused, and wait for the result",
				Description: "Use it after you have mended the reason, such as a full lock. The server itself retries codes whose\n" +
					"device was unreachable or busy.",
				ArgsUsage: "CODE_ID",
				Flags:     append([]cli.Flag{noWaitFlag(), timeoutFlag()}, apiFlags()...),
				Action:    onCode(retryCode),
			},
		},
	}
}

func createCodeCommand() *cli.Command {
	return &cli.Command{
		Name:  "create",
		Usage: "create a code, wait until its device has it, and print its id",
		Flags: apiCommandFlags(
			&cli.StringFlag{
				Name:     "device",
				Required: true,
				Usage:    "create the code on the `DEVICE`, an id or an exact name",
			},
			&cli.StringFlag{Name: "name", Usage: "set the name to `TEXT`"},
			&cli.StringFlag{
				Name: "pin-file",
				Usage: "read the PIN from `FILE`, or from standard input if it is - (default: the server chooses a PIN, which " +
					"this command does not print)",
			},
			&cli.StringFlag{
				Name:  "starts-at",
				Usage: "let the code open the door from `TIME` on, such as 2026-01-31T15:00:00Z",
			},
			&cli.StringFlag{Name: "ends-at", Usage: "remove the code at `TIME`, such as 2026-02-07T11:00:00Z"},
			noWaitFlag(),
			timeoutFlag(),
		),
		Action: withClient(createCode),
	}
}

func noWaitFlag() cli.Flag {
	return &cli.BoolFlag{Name: "no-wait", Usage: "do not wait for the device"}
}

// deviceCode is a code with its device. Exactly one of managed and unmanaged is set.
type deviceCode struct {
	device    api.Device
	managed   *api.AccessCode
	unmanaged *api.UnmanagedAccessCode
}

func (c deviceCode) record() any {
	if c.managed != nil {
		return c.managed
	}
	return c.unmanaged
}

func (c deviceCode) id() string {
	if c.managed != nil {
		return c.managed.AccessCodeID
	}
	return c.unmanaged.AccessCodeID
}

func (c deviceCode) name() string {
	name := (*string)(nil)
	if c.managed != nil {
		name = c.managed.Name
	} else {
		name = c.unmanaged.Name
	}
	if name == nil {
		return ""
	}
	return printable(*name)
}

func (c deviceCode) status() string {
	if c.managed != nil {
		return string(c.managed.Status)
	}
	return c.unmanaged.Status
}

// frame returns the start and the end of a code. Both are nil for a code without a time frame.
func (c deviceCode) frame() (starts, ends *time.Time) {
	if c.managed != nil {
		return c.managed.StartsAt, c.managed.EndsAt
	}
	return c.unmanaged.StartsAt, c.unmanaged.EndsAt
}

// problems returns the errors of the code itself, without those of its device and account.
func (c deviceCode) problems() []api.Problem {
	if c.managed == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.managed.Errors), func(p api.Problem) bool { return !p.IsAccessCodeError })
}

// since returns when the oldest pending change of a code was requested, or else when the code was created.
func (c deviceCode) since() time.Time {
	if c.managed == nil {
		return c.unmanaged.CreatedAt
	}
	since := time.Time{}
	for _, m := range c.managed.PendingMutations {
		if since.IsZero() || m.CreatedAt.Before(since) {
			since = m.CreatedAt
		}
	}
	if since.IsZero() {
		return c.managed.CreatedAt
	}
	return since
}

func codeListing() listing[deviceCode] {
	return listing[deviceCode]{
		columns: []column[deviceCode]{
			{"CODE", deviceCode.id},
			{"NAME", deviceCode.name},
			{"DEVICE", func(c deviceCode) string { return named(c.device.DisplayName, c.device.DeviceID) }},
			{"STATUS", func(c deviceCode) string {
				if c.managed == nil {
					return c.status() + ", unmanaged"
				}
				return c.status()
			}},
			{"FOR", func(c deviceCode) string { return formatAge(time.Since(c.since())) }},
			{"STARTS", func(c deviceCode) string { starts, _ := c.frame(); return formatOptionalTime(starts) }},
			{"ENDS", func(c deviceCode) string { _, ends := c.frame(); return formatOptionalTime(ends) }},
			{"ERROR", func(c deviceCode) string {
				if problems := c.problems(); len(problems) > 0 {
					return printable(problems[0].Message)
				}
				return ""
			}},
		},
		id:     deviceCode.id,
		record: deviceCode.record,
		empty:  "There are no such codes. `deviceaccess-server codes create` creates one.",
	}
}

func listCodes(ctx context.Context, c *cli.Command, to *client) error {
	devices, err := to.devicesOf(ctx, c.String("device"))
	if err != nil {
		return err
	}
	codes, err := to.codesOfAll(ctx, devices)
	if err != nil {
		return err
	}
	codes = slices.DeleteFunc(codes, func(code deviceCode) bool {
		return c.String("status") != "" && code.status() != c.String("status") ||
			c.IsSet("older-than") && time.Since(code.since()) < c.Duration("older-than") ||
			c.Bool("with-errors") && len(code.problems()) == 0
	})
	return codeListing().print(c, codes)
}

// devicesOf returns the device that a flag names, or all devices.
func (o *client) devicesOf(ctx context.Context, text string) ([]api.Device, error) {
	if text == "" {
		return api.Collect(o.Devices(ctx, api.ListDevicesRequest{}))
	}
	d, err := o.findDevice(ctx, text)
	return []api.Device{d}, err
}

// codesOfAll returns the managed codes of devices, in the order of the devices. The API lists codes by device.
func (o *client) codesOfAll(ctx context.Context, devices []api.Device) ([]deviceCode, error) {
	byDevice, mu := make([][]deviceCode, len(devices)), sync.Mutex{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(api.DefaultMaxConcurrentRequests)
	for i, d := range devices {
		group.Go(func() error {
			codes, err := o.codesOf(ctx, d)
			if api.IsNotFound(err) { // the device was removed just now
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			byDevice[i] = codes
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(byDevice...), nil
}

// codesOf returns the managed codes of a device.
func (o *client) codesOf(ctx context.Context, d api.Device) (out []deviceCode, err error) {
	for code, err := range o.AccessCodes(ctx, d.DeviceID) {
		if err != nil {
			return nil, err
		}
		out = append(out, deviceCode{device: d, managed: &code})
	}
	return out, nil
}

// onCode runs act on the managed code that the argument names.
func onCode(act func(context.Context, *cli.Command, *client, deviceCode) error) cli.ActionFunc {
	return withClient(func(ctx context.Context, c *cli.Command, to *client) error {
		id := c.Args().First()
		if _, err := uuid.Parse(id); err != nil {
			return usagef("the argument must be an access_code_id; `deviceaccess-server codes list` shows the ids")
		}
		code, err := to.code(ctx, id)
		if err != nil {
			return err
		}
		return act(ctx, c, to, code)
	})
}

// code returns a managed code with its device.
func (o *client) code(ctx context.Context, id string) (deviceCode, error) {
	answer, err := api.Call[api.AccessCodeResponse](ctx, o.GetAccessCode, api.GetAccessCodeRequest{AccessCodeID: id})
	if err != nil {
		return deviceCode{}, err
	}
	d, err := o.findDevice(ctx, answer.AccessCode.DeviceID)
	if api.IsNotFound(err) {
		d, err = api.Device{DeviceID: answer.AccessCode.DeviceID}, nil
	}
	return deviceCode{device: d, managed: &answer.AccessCode}, err
}

func showCode(_ context.Context, c *cli.Command, _ *client, code deviceCode) error {
	l := codeListing()
	l.columns = slices.DeleteFunc(l.columns, func(c column[deviceCode]) bool { return c.title == "ERROR" })
	l.columns = append(l.columns, column[deviceCode]{"CREATED", func(c deviceCode) string {
		return formatTime(c.managed.CreatedAt)
	}})
	for _, m := range code.managed.PendingMutations {
		l.columns = append(l.columns, column[deviceCode]{"PENDING", func(deviceCode) string {
			return formatTime(m.CreatedAt) + "  " + printable(m.Message)
		}})
	}
	l.columns = append(l.columns, problemColumns[deviceCode](code.managed.Errors, code.managed.Warnings)...)
	return l.printOne(c, code)
}

func createCode(ctx context.Context, c *cli.Command, to *client) error {
	d, err := to.findDevice(ctx, c.String("device"))
	if err != nil {
		return err
	}
	request := api.CreateAccessCodeRequest{
		DeviceID: d.DeviceID,
		Name:     c.String("name"),
		StartsAt: c.String("starts-at"),
		EndsAt:   c.String("ends-at"),
	}
	if file := c.String("pin-file"); file != "" {
		if request.Code, err = readPIN(ctx, file); err != nil {
			return usagef("--pin-file: %w", err)
		}
	}
	answer, err := api.Call[api.AccessCodeCreatedResponse](ctx, to.CreateAccessCode, request)
	if err != nil {
		return err
	}
	id := answer.AccessCode.AccessCodeID
	if !c.Bool("no-wait") {
		if err := to.await(ctx, c, answer.ActionAttempt, to.codeArrives(id)); err != nil {
			return fmt.Errorf(
				"the code %s was created, but its device does not have it yet: %w; `deviceaccess-server codes "+
					"get %s` shows its state",
				id,
				err,
				id,
			)
		}
	}
	if c.String("output") == outputTable {
		_, err := fmt.Println(id)
		return err
	}
	code, err := to.code(ctx, id)
	if err != nil {
		return err
	}
	return codeListing().printOne(c, code)
}

// readPIN reads a PIN from a file, or from standard input. Its errors do not quote the content.
func readPIN(ctx context.Context, file string) (string, error) {
	if file != "-" {
		pin, _, err := readSecret(file)
		return pin, err
	}
	text, err := answer(ctx)
	if text = strings.TrimSpace(text); text == "" {
		return "", errors.Join(errors.New("standard input has no PIN"), err)
	}
	return text, nil
}

func deleteCode(ctx context.Context, c *cli.Command, to *client, code deviceCode) error {
	answer, err := api.Call[api.ActionAttemptResponse](ctx, to.DeleteAccessCode,
		api.DeleteAccessCodeRequest{AccessCodeID: code.id()})
	if err != nil {
		return err
	}
	if c.Bool("no-wait") {
		fmt.Println("Deleting", code.id())
		return nil
	}
	if err := to.await(ctx, c, answer.ActionAttempt, to.codeLeaves(code.id())); err != nil {
		return fmt.Errorf("the code may still open the door: %w; the server keeps trying to remove it", err)
	}
	fmt.Println("Deleted", code.id())
	return nil
}

// retryCode requests what the code already has, which makes the server retry what the device has refused.
func retryCode(ctx context.Context, c *cli.Command, to *client, code deviceCode) error {
	if code.managed.Status == api.Set && len(code.managed.PendingMutations) == 0 {
		fmt.Println("The device has the code. There is nothing to retry.")
		return nil
	}
	request := api.UpdateAccessCodeRequest{AccessCodeID: code.id(), Name: code.managed.Name}
	switch {
	case code.managed.Code != nil:
		request.Code = *code.managed.Code
	case code.managed.Name == nil:
		return refusedf(
			"the code has neither a PIN nor a name yet: the server is waiting for the vendor to choose its PIN",
		)
	}
	answer, err := api.Call[api.ActionAttemptResponse](ctx, to.UpdateAccessCode, request)
	if err != nil {
		return err
	}
	if c.Bool("no-wait") {
		fmt.Println("Retrying", code.id())
		return nil
	}
	if err := to.await(ctx, c, answer.ActionAttempt, to.codeArrives(code.id())); err != nil {
		return err
	}
	fmt.Println("The device has the code", code.id())
	return nil
}

// codeArrives is the change of a code that its device gets, or that starts later.
func (o *client) codeArrives(id string) change {
	return change{
		done: func(ctx context.Context) (bool, error) {
			code, err := o.code(ctx, id)
			if err != nil {
				return false, err
			}
			starts, _ := code.frame()
			scheduled := code.managed.Status == api.Unset && starts != nil && starts.After(time.Now())
			return scheduled || code.managed.Status == api.Set && len(code.managed.PendingMutations) == 0, nil
		},
		show: "codes get " + id,
	}
}

// codeLeaves is the change of a code that is removed from its device.
func (o *client) codeLeaves(id string) change {
	return change{
		done: func(ctx context.Context) (bool, error) {
			_, err := o.code(ctx, id)
			if api.IsNotFound(err) {
				return true, nil
			}
			return false, err
		},
		show: "codes get " + id,
	}
}
