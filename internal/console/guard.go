package console

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/console/view"
)

const (
	// answersKept and answersLast bound what is remembered of the API server's answers, in number and time.
	answersKept, answersLast = 20_000, 30 * time.Second
	// asksAPage is how many namespaces one page asks about at most; the next page asks about more.
	asksAPage = 200
	// reviewsASecond and reviewsAtOnce bound how many tokens the API server is asked about that it did not know within
	// knownFor: anybody may send any.
	reviewsASecond, reviewsAtOnce, knownFor = 20, 200, 12 * time.Hour
)

// errTooMany is for a token that the API server was not asked about, because too many came.
var errTooMany = errors.New("too many sign in at once")

// errStranger is for a token that the API server does not know.
var errStranger = errors.New("the API server does not know this token, or it has ended")

// guard asks the API server who a reader is and what the reader may list, and remembers the answers for a short time.
type guard struct {
	api client.Client
	// newTokens bounds how often the API server is asked whose an unknown token is.
	newTokens flowcontrol.PassiveRateLimiter

	mutex   sync.Mutex
	answers map[[sha256.Size]byte]answer
	// known are tokens that the API server knew, and until when that spares them the bound.
	known map[[sha256.Size]byte]time.Time
}

func newGuard(api client.Client) *guard {
	return &guard{api: api, newTokens: flowcontrol.NewTokenBucketPassiveRateLimiter(reviewsASecond, reviewsAtOnce)}
}

// answer is what the API server said.
type answer struct {
	until time.Time
	user  authenticationv1.UserInfo
	yes   bool
}

// errBlind is for an operator that cannot find out who its readers are.
var errBlind = errors.New("the console is on, and this operator may not create tokenreviews, so that users cannot sign in: " +
	"apply component monitoring, or bind ClusterRole system:auth-delegator to the operator's ServiceAccount")

// checkRights asks whether the operator may find out who its readers are; [errBlind] if not.
func (g *guard) checkRights(ctx context.Context) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: authenticationv1.GroupName, Resource: "tokenreviews", Verb: "create",
		},
	}}
	if err := g.api.Create(ctx, review); err != nil {
		return fmt.Errorf("ask whether the console may review tokens: %w", err)
	}
	if !review.Status.Allowed {
		return errBlind
	}
	return nil
}

// remembered returns an answer that is not too old.
func (g *guard) remembered(key [sha256.Size]byte) (answer, bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	a, known := g.answers[key]
	return a, known && time.Now().Before(a.until)
}

// remember keeps an answer. When there are too many, it forgets all.
func (g *guard) remember(key [sha256.Size]byte, a answer) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.answers == nil || len(g.answers) >= answersKept {
		g.answers = map[[sha256.Size]byte]answer{}
	}
	a.until = time.Now().Add(answersLast)
	g.answers[key] = a
}

func (g *guard) wasKnown(key [sha256.Size]byte) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return time.Now().Before(g.known[key])
}

// noteKnown remembers a token that the API server knew. When there are too many, it forgets all.
func (g *guard) noteKnown(key [sha256.Size]byte) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.known == nil || len(g.known) >= answersKept {
		g.known = map[[sha256.Size]byte]time.Time{}
	}
	g.known[key] = time.Now().Add(knownFor)
}

// identify finds out whose token it is; [errStranger] if the API server does not know it, [errTooMany] if it was not asked.
func (g *guard) identify(ctx context.Context, token string) (authenticationv1.UserInfo, error) {
	key := sha256.Sum256([]byte("token " + token))
	if a, known := g.remembered(key); known && a.yes {
		return a.user, nil
	}
	if !g.wasKnown(key) && !g.newTokens.TryAccept() {
		return authenticationv1.UserInfo{}, errTooMany
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := g.api.Create(ctx, review); err != nil {
		return authenticationv1.UserInfo{}, err
	}
	if !review.Status.Authenticated {
		return authenticationv1.UserInfo{}, errStranger
	}
	g.remember(key, answer{user: review.Status.User, yes: true})
	g.noteKnown(key)
	return review.Status.User, nil
}

// question asks whether a user may do something; asked is false if the answer was known.
func (g *guard) question(
	ctx context.Context, user *authenticationv1.UserInfo, what authorizationv1.SubjectAccessReviewSpec,
) (yes, asked bool, err error) {
	what.User, what.UID, what.Groups = user.Username, user.UID, user.Groups
	what.Extra = map[string]authorizationv1.ExtraValue{}
	for k, v := range user.Extra {
		what.Extra[k] = authorizationv1.ExtraValue(v)
	}
	content, err := json.Marshal(what)
	if err != nil {
		return false, false, err
	}
	key := sha256.Sum256(append([]byte("may "), content...))
	if a, known := g.remembered(key); known {
		return a.yes, false, nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: what}
	if err := g.api.Create(ctx, review); err != nil {
		return false, true, err
	}
	yes = review.Status.Allowed && !review.Status.Denied
	g.remember(key, answer{yes: yes})
	return yes, true, nil
}

// mayOpen tells whether a user may get a path of the console.
func (g *guard) mayOpen(ctx context.Context, user *authenticationv1.UserInfo, path string) (bool, error) {
	yes, _, err := g.question(ctx, user, authorizationv1.SubjectAccessReviewSpec{
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	})
	return yes, err
}

// sightOf asks what a user may list of a model. About namespaces it asks only if the user may not list all of them.
func (g *guard) sightOf(ctx context.Context, user *authenticationv1.UserInfo, m *view.Model) (*view.Sight, error) {
	s := &view.Sight{User: user.Username, Jobs: map[string]bool{}, Merges: map[string]bool{}}
	left := asksAPage
	may := func(group, resource, namespace string) (bool, error) {
		yes, asked, err := g.question(ctx, user, authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Group: group, Resource: resource, Namespace: namespace},
		})
		if asked && namespace != "" {
			left--
		}
		return yes, err
	}
	tideline := v1beta1.GroupVersion.Group
	for _, ask := range []struct {
		group, resource string
		to              *bool
	}{
		{tideline, "elastictrainingjobs", &s.AllJobs}, {tideline, "mergejobs", &s.AllMerges},
		{tideline, "resourcequotaprofiles", &s.Profiles}, {"", "nodes", &s.Nodes},
	} {
		var err error
		if *ask.to, err = may(ask.group, ask.resource, ""); err != nil {
			return nil, err
		}
	}
	all, merging := m.Namespaces()
	for i, namespace := range all {
		if s.AllJobs && s.AllMerges {
			break
		}
		if left <= 0 {
			s.Unasked = len(all) - i
			break
		}
		var err error
		if s.Jobs[namespace], err = may(tideline, "elastictrainingjobs", namespace); err != nil {
			return nil, err
		}
		// Where the reader sees no trainings and there are no merges, the answer changes nothing.
		if !s.Jobs[namespace] && !merging[namespace] {
			continue
		}
		if s.Merges[namespace], err = may(tideline, "mergejobs", namespace); err != nil {
			return nil, err
		}
	}
	return s, nil
}
