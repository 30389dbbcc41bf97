"""Progress of a Hugging Face Trainer: Trainer(..., callbacks=[TidelineCallback()]). Needs tideline_progress.py beside it."""

from transformers import TrainerCallback

from tideline_progress import Progress


class TidelineCallback(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.progress = Progress(total=state.max_steps)
        self.progress.start(state.global_step)
        self.pauses = False

    def on_step_end(self, args, state, control, **kwargs):
        if control.should_evaluate or control.should_save:
            self.pauses = True
            # The Trainer evaluates and saves after this call, until the next step begins.
            self.progress.say(state.global_step, phase="evaluate" if control.should_evaluate else "checkpoint")
        else:
            self.progress.step(state.global_step)

    def on_save(self, args, state, control, **kwargs):
        self.progress.saved(state.global_step)

    def on_step_begin(self, args, state, control, **kwargs):
        if self.pauses:
            self.progress.say(state.global_step)
            self.pauses = False

    def on_train_end(self, args, state, control, **kwargs):
        self.progress.end(state.global_step)
