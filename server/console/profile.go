package console

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
)

const profilePath = Path + "/profile"

func (h *handler) profileRoutes() []route {
	change := func(pattern string, handle func(*request) error) route {
		return route{
			method:    http.MethodPost,
			pattern:   "/profile" + pattern,
			operation: "/console/profile" + strings.ReplaceAll(pattern, "/{id}", ""),
			handle:    handle,
		}
	}
	return []route{
		{method: http.MethodGet, pattern: "/profile", handle: showProfile},
		change("/name", setOwnName),
		change("/password", changePassword),
		change("/codes", recently(profilePath, beginTOTP)),
		change("/codes/confirm", recently(profilePath, confirmTOTP)),
		change("/codes/remove", recently(profilePath, removeTOTP)),
		change("/passkeys/options", recently(profilePath, registrationOptions)),
		change("/passkeys", recently(profilePath, addPasskey)),
		change("/passkeys/{id}/remove", recently(profilePath, removePasskey)),
		change("/sessions/{id}/end", endOwnSession),
		change("/sessions/end-others", endOtherSessions),
	}
}

var profileNotices = map[string]string{
	"signed-out":      "You are signed out.",
	"name-set":        "Your name is changed.",
	"password-set":    "Your password is changed. Your other sessions have ended.",
	"codes-set":       "Signing in with your password now needs a code.",
	"codes-removed":   "Signing in with your password needs no code any more.",
	"passkey-added":   "The passkey is added.",
	"passkey-removed": "The passkey is removed.",
	"session-ended":   "The session has ended.",
	"sessions-ended":  "The sessions have ended.",
}

// profile is what the page about the operator itself shows.
type profile struct {
	passkeys []operator.Passkey
	sessions []operator.Session
}

func showProfile(rq *request) (err error) {
	var p profile
	if p.passkeys, err = rq.h.Access.Operators.ListPasskeys(rq.r.Context(), rq.session.Operator.ID); err != nil {
		return err
	}
	if p.sessions, err = rq.h.Access.Operators.ListSessions(rq.r.Context(), rq.session.Operator.ID); err != nil {
		return err
	}
	return rq.show(profilePage(rq, p))
}

func setOwnName(rq *request) error {
	if _, err := rq.h.Access.Operators.SetName(rq.r.Context(), rq.session.Operator.ID, rq.form("name")); err != nil {
		return err
	}
	return rq.done(profilePath, "name-set")
}

func changePassword(rq *request) error {
	if !rq.session.Operator.HasPassword && !rq.signedInRecently() {
		return rq.done(confirmURL(profilePath), "")
	}
	err := rq.guess(func() error {
		return rq.h.Access.Operators.ChangePassword(
			rq.r.Context(), rq.session, rq.r.PostFormValue("old"), rq.r.PostFormValue("password"))
	})
	if err != nil {
		return err
	}
	return rq.done(profilePath, "password-set")
}

func beginTOTP(rq *request) error {
	setup, err := rq.h.Access.Operators.BeginTOTP(rq.r.Context(), rq.session.Operator.ID)
	if err != nil {
		return err
	}
	return rq.showTOTP(http.StatusOK, setup, nil)
}

func (rq *request) showTOTP(status int, setup operator.TOTPSetup, e *domain.Error) error {
	return rq.render(status, totpPage(rq, setup, newQR(setup.URL), e))
}

func confirmTOTP(rq *request) error {
	id, state := rq.session.Operator.ID, rq.form("state")
	err := rq.h.Access.Operators.ConfirmTOTP(rq.r.Context(), id, state, rq.form("code"))
	if e, ok := domain.AsError(err); ok && e.Kind == domain.Invalid {
		setup, again := rq.h.Access.Operators.TOTPSetupOf(rq.r.Context(), id, state)
		if again != nil {
			return again
		}
		return rq.showTOTP(http.StatusUnprocessableEntity, setup, e)
	}
	if err != nil {
		return err
	}
	return rq.done(profilePath, "codes-set")
}

func removeTOTP(rq *request) error {
	if err := rq.h.Access.Operators.RemoveTOTP(rq.r.Context(), rq.session.Operator.ID); err != nil {
		return err
	}
	return rq.done(profilePath, "codes-removed")
}

func registrationOptions(rq *request) error {
	options, state, err := rq.h.Access.Operators.BeginRegistration(
		rq.r.Context(), rq.session.Operator.ID, rq.origin())
	if err != nil {
		return err
	}
	return rq.answer(ceremony{options, state})
}

func addPasskey(rq *request) error {
	err := rq.h.Access.Operators.FinishRegistration(rq.r.Context(), rq.session.Operator.ID, operator.NewPasskey{
		Name:   rq.form("name"),
		Origin: rq.origin(),
		State:  rq.form("state"),
		Answer: []byte(rq.form("answer")),
	})
	if err != nil {
		return err
	}
	return rq.done(profilePath, "passkey-added")
}

// idParam returns the identifier in the path. An invalid one is uuid.Nil, which nothing has.
func (rq *request) idParam() uuid.UUID {
	id, _ := uuid.Parse(rq.param("id"))
	return id
}

func removePasskey(rq *request) error {
	err := rq.h.Access.Operators.RemovePasskey(rq.r.Context(), rq.session.Operator.ID, rq.idParam())
	if err != nil {
		return err
	}
	return rq.done(profilePath, "passkey-removed")
}

func endOwnSession(rq *request) error {
	if err := rq.h.Access.Operators.EndSession(rq.r.Context(), rq.session.Operator.ID, rq.idParam()); err != nil {
		return err
	}
	return rq.done(profilePath, "session-ended")
}

func endOtherSessions(rq *request) error {
	if err := rq.h.Access.Operators.EndOtherSessions(rq.r.Context(), rq.session); err != nil {
		return err
	}
	return rq.done(profilePath, "sessions-ended")
}
