"""Progress of a Lightning Trainer: Trainer(..., callbacks=[TidelineCallback()]). Needs tideline_progress.py beside it."""

from lightning.pytorch import Callback

from tideline_progress import Progress


class TidelineCallback(Callback):
    def on_train_start(self, trainer, module):
        total = trainer.estimated_stepping_batches
        self.progress = Progress(total=int(total) if total != float("inf") else 0)
        self.progress.start(trainer.global_step)
        self.saving = None

    def on_train_batch_start(self, trainer, module, batch, batch_index):
        self.saved()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_index):
        self.progress.step(trainer.global_step)

    def on_validation_start(self, trainer, module):
        if not trainer.sanity_checking:
            self.progress.say(trainer.global_step, phase="evaluate")

    def on_validation_end(self, trainer, module):
        if not trainer.sanity_checking:
            self.progress.say(trainer.global_step)

    def on_save_checkpoint(self, trainer, module, checkpoint):
        # Called before the file is written, which is there once training goes on.
        self.progress.say(trainer.global_step, phase="checkpoint")
        self.saving = trainer.global_step

    def saved(self):
        if self.saving is not None:
            self.progress.saved(self.saving)
            self.saving = None

    def on_train_end(self, trainer, module):
        self.saved()
        self.progress.end(trainer.global_step)
