"""As much of SGLang's frontend language as our programs of it use, one thing after the other: a state is a text and its variables.

    backend(text, max_tokens=16, temperature=0.0, regex=None, ignore_eos=True)      ->      what is generated
"""


def gen(name, **settings):
    return name, settings


def function(body):
    return Function(body, {})


class Function:
    def __init__(self, func, bound):
        self.func, self.bound = func, bound

    def bind(self, **named):
        return Function(self.func, {**self.bound, **named})

    def run_batch(self, rows, *, temperature, backend):
        states = []
        for row in rows:
            states.append(State("", {}, lambda text, **settings: backend(text, **{"temperature": temperature, **settings})))
            states[-1].ret_value = self.func(states[-1], **self.bound, **row)
        return states


class State:
    def __init__(self, text, variables, backend):
        self.text, self.variables, self.backend = text, variables, backend

    def __iadd__(self, added):
        if isinstance(added, str):
            self.text += added
        else:
            name, settings = added
            self.variables[name] = self.backend(self.text, **settings)
            self.text += self.variables[name]
        return self

    def __getitem__(self, name):
        return self.variables[name]

    def fork(self, size):
        return Group([State(self.text, dict(self.variables), self.backend) for _ in range(size)], self)


class Group:
    """Its states one by one, as in SGLang, where it has no length."""

    def __init__(self, states, parent):
        self.states, self.parent = states, parent

    def __getitem__(self, place):
        return self.states[place]

    def __iadd__(self, added):
        for state in self.states:
            state += added
        return self

    def join(self):
        before = set(self.parent.variables)
        for state in self.states:
            for name in set(state.variables) - before:
                self.parent.variables.setdefault(name, []).append(state.variables[name])
